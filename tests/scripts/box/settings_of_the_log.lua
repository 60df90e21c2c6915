-- box.cfg: settings of the log that are refused and taken

box.cfg{log_level = 'x'}

box.cfg{log_level = 'INFO'}

box.cfg{log_level = 'info'}

box.cfg.log_level

box.cfg{log_level = 5}

box.cfg{too_long_threshold = 'x'}

box.cfg{too_long_threshold = 0}

box.cfg.too_long_threshold

box.cfg{too_long_threshold = -1}

box.cfg{too_long_threshold = 0.5}

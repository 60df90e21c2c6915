//! `sim`: the tools of this package on the command line.

use sim::report::Progress;
use sim::{crash_points, histories};
fn main() {
    let start = std::time::Instant::now();
    if std::env::args().nth(1).as_deref() == Some("errors") {
        for kind in sim::errors::Kind::ALL {
            let outcome = sim::errors::run_kinds(&[kind], Default::default(), &Progress::hidden());
            outcome.counts.print();
            println!(
                "{:?} logs {} starts {} {:?}",
                outcome.runs,
                outcome.failed_logs,
                outcome.failed_starts,
                start.elapsed()
            );
            if let Some(f) = outcome.finding {
                println!("{f}");
            }
        }
        return;
    }
    let outcome = crash_points::run(
        crash_points::Options { again: std::env::args().nth(1).is_some(), ..Default::default() },
        &Progress::visible("crash points"),
    );
    outcome.counts.print();
    if let Some(f) = outcome.finding {
        println!("{f}");
        for o in outcome.operations {
            println!("   {o}");
        }
    }
    println!("{:?}", start.elapsed());
    let outcome = histories::run(histories::Options::default(), &Progress::visible("histories"));
    outcome.counts.print();
    if let Some(f) = outcome.finding {
        println!("{f}");
    }
    println!("{:?} {}", start.elapsed(), outcome.histories);
}

//! tuple

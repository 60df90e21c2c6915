//! `sim`: the tools of this package on the command line.

use sim::report::Progress;
use sim::{crash_points, histories};
fn main() {
    let start = std::time::Instant::now();
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

use sim::machine::seed::{Plan, run};
fn main() {
    let mut a = std::env::args().skip(1);
    let first: u64 = a.next().map_or(0, |t| t.parse().unwrap_or(0));
    let count: u64 = a.next().map_or(1, |t| t.parse().unwrap_or(1));
    let traced = a.next().is_some();
    for seed in first..first + count {
        let t = std::time::Instant::now();
        let v = run(&Plan { seed, workloads: &[], is_traced: traced, wrap: None });
        println!(
            "{seed} {:?} ops {} ack {} ref {} unk {} steps {} sim {} ms real {:?} hash {:x} {:?}",
            v.workloads,
            v.operations,
            v.acknowledged,
            v.refused,
            v.unknown,
            v.steps,
            v.simulated_ns / 1000000,
            t.elapsed(),
            v.hash,
            v.violation
        );
        if traced {
            for l in v.trace {
                println!("{l}");
            }
            println!("{:?}", v.reached);
            for (p, b) in &v.files {
                let d = std::path::Path::new("/tmp/simdump").join(p.strip_prefix("/").unwrap());
                std::fs::create_dir_all(d.parent().unwrap()).unwrap();
                std::fs::write(d, b).unwrap();
            }
        }
    }
}

//! What `cohabit-gpu` sees when it looks at a GPU.

use cohabit_fakes::{NvmlFault, Performance};
use cohabit_gpu::{GpuError, GpuProcess, GpuScan, NvmlSession};
use cohabit_types::{Bytes, GpuPerformance, GpuReading};

use crate::kit::{Bench, end, until};

fn look(bench: &Bench) -> GpuScan {
    NvmlSession::open(Some(&bench.installed.nvml)).unwrap().scan(&bench.gpu()).unwrap()
}

#[test]
fn readings_are_those_of_the_moment() {
    let bench = Bench::new();
    bench.script(|gpu| (gpu.utilization, gpu.power, gpu.temperature) = (75, 350_500, 63));
    let expected = GpuReading {
        utilization: Some(0.75),
        memory_used: Some(Bytes(512 << 20)),
        power: Some(350.5),
        temperature: Some(63.0),
        performance: None,
    };
    assert_eq!(look(&bench), GpuScan { reading: expected, processes: Vec::new() });
}

#[test]
fn a_reading_that_is_not_reported_is_none_and_the_others_stay() {
    let bench = Bench::new();
    let silent = ["nvmlDeviceGetPowerUsage", "nvmlDeviceGetTemperature"];
    bench.script(|gpu| gpu.faults.extend(silent.map(|name| (name.to_owned(), NvmlFault::NoPermission))));
    let reading = look(&bench).reading;
    assert_eq!((reading.power, reading.temperature, reading.utilization), (None, None, Some(0.0)));
}

#[test]
fn a_gpu_that_is_lost_is_seen_again_by_a_library_that_is_opened_anew() {
    let bench = Bench::new();
    let gpus = NvmlSession::open(Some(&bench.installed.nvml)).unwrap();
    gpus.scan(&bench.gpu()).unwrap();
    bench.script(|gpu| _ = gpu.faults.insert("*".into(), NvmlFault::Lost));
    assert!(matches!(gpus.scan(&bench.gpu()), Err(GpuError::Lost(_))));
    bench.script(|gpu| gpu.faults.clear());
    drop(gpus);
    look(&bench);
}

#[test]
fn each_process_is_seen_once_whichever_way_it_came() {
    let bench = Bench::new();
    let server = bench.start_server();
    let client = bench.endless(&mut bench.client(&["--alloc", "3G"]));
    let aside = bench.endless(&mut bench.client(&["--bypass-mps", "--alloc", "2G"]));
    bench.world.add_foreign_process(std::process::id() as i32, &bench.gpu().0, 5 << 30).unwrap();
    until("all have their memory", || bench.world.memory_used(&bench.world.gpus()[0]) > 10 << 30);
    let seen = |pid, bytes| GpuProcess { pid, memory: Some(Bytes(bytes)) };
    let mut expected = [
        seen(server, 27 << 20),
        seen(client.id() as i32, 3 << 30),
        seen(aside.id() as i32, 2 << 30),
        seen(std::process::id() as i32, 5 << 30),
    ];
    expected.sort_by_key(|process| process.pid);
    assert_eq!(look(&bench).processes, expected);
    end(client);
    end(aside);
}

#[test]
fn a_process_that_comes_while_the_list_is_read_does_not_spoil_it() {
    let bench = Bench::new();
    bench.world.add_foreign_process(std::process::id() as i32, &bench.gpu().0, 1 << 30).unwrap();
    bench.script(|gpu| gpu.racing_lists = 3);
    assert_eq!(look(&bench).processes.len(), 1);
}

#[test]
fn the_performance_monitor_reports_means_from_the_second_scan_on() {
    let bench = Bench::new();
    let shown =
        Performance { sm_active: 62.5, sm_occupancy: 25.0, tensor_active: 12.5, memory_bandwidth: 50.0 };
    bench.script(|gpu| gpu.performance = Some(shown));
    let gpus = NvmlSession::open(Some(&bench.installed.nvml)).unwrap();
    let means = || gpus.scan(&bench.gpu()).unwrap().reading.performance;
    assert_eq!(means(), None);
    let expected = GpuPerformance {
        sm_active: Some(0.625),
        sm_occupancy: Some(0.25),
        tensor_active: Some(0.125),
        memory_bandwidth: Some(0.5),
    };
    assert_eq!(means(), Some(expected));
}

//! Critical errors of the driver as `cohabit-gpu` hears them.

use std::time::Duration;

use cohabit_fakes::{FakeGpu, NvmlFault};
use cohabit_gpu::{GpuError, NvmlSession, Xid};
use cohabit_types::DeviceId;

use crate::kit::{Bench, PATIENCE};

#[test]
fn each_error_is_received_once_with_its_gpu() {
    let bench = Bench::of(vec![FakeGpu::numbered(0), FakeGpu::numbered(1)]);
    let gpus = NvmlSession::open(Some(&bench.installed.nvml)).unwrap();
    let xids = gpus.xids().unwrap();
    let second = FakeGpu::numbered(1).uuid;
    bench.world.emit_xid(&second, 79).unwrap();
    assert_eq!(xids.next(PATIENCE).unwrap(), Some(Xid { device: DeviceId(second.into()), code: 79 }));
    bench.world.emit_xid(&bench.gpu().0, 48).unwrap();
    assert_eq!(xids.next(PATIENCE).unwrap(), Some(Xid { device: bench.gpu(), code: 48 }));
    assert_eq!(xids.next(Duration::ZERO).unwrap(), None);
}

#[test]
fn a_lost_gpu_is_reported_as_no_longer_monitored() {
    let bench = Bench::new();
    let gpus = NvmlSession::open(Some(&bench.installed.nvml)).unwrap();
    let xids = gpus.xids().unwrap();
    bench.script(|gpu| _ = gpu.faults.insert("*".into(), NvmlFault::Lost));
    assert!(matches!(xids.next(PATIENCE), Err(GpuError::Lost(_))));
}

#[test]
fn gpus_without_error_events_are_reported() {
    let bench = Bench::new();
    let unknown = ("nvmlDeviceGetSupportedEventTypes".to_owned(), NvmlFault::NotSupported);
    bench.script(|gpu| gpu.faults.extend([unknown]));
    let gpus = NvmlSession::open(Some(&bench.installed.nvml)).unwrap();
    assert!(matches!(gpus.xids(), Err(GpuError::Other(_))));
}

#[test]
fn a_gpu_that_does_not_answer_hides_no_errors_of_others() {
    let bench = Bench::of(vec![FakeGpu::numbered(0), FakeGpu::numbered(1)]);
    bench.script(|gpu| _ = gpu.faults.insert("*".into(), NvmlFault::Lost));
    let gpus = NvmlSession::open(Some(&bench.installed.nvml)).unwrap();
    let xids = gpus.xids().unwrap();
    let second = FakeGpu::numbered(1).uuid;
    bench.world.emit_xid(&second, 31).unwrap();
    assert_eq!(xids.next(PATIENCE).unwrap(), Some(Xid { device: DeviceId(second.into()), code: 31 }));
}

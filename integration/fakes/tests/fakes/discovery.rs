//! What `cohabit-gpu` finds on machines with GPUs, and what it says on those without.

use std::fs;

use cohabit_fakes::{ComputeMode as Mode, FakeGpu, LibraryStart, Mig as Divided, NvmlFault, Topology};
use cohabit_gpu::{GpusUnavailable, NvmlSession};
use cohabit_types::{
    Bytes, ComputeMode, Condition, Device, DeviceId, DeviceKind, GpuPeer, GpuProperties, Health, Mig,
    PeerPath,
};

use crate::kit::Bench;

fn open(bench: &Bench) -> NvmlSession {
    NvmlSession::open(Some(&bench.installed.nvml)).unwrap()
}

/// The only GPU, which says what it is.
fn only(bench: &Bench) -> Device {
    let [device] = open(bench).devices().try_into().unwrap();
    device.unwrap()
}

#[test]
fn a_gpu_has_all_properties_that_its_driver_reports() {
    let bench = Bench::new();
    let expected = Device {
        id: bench.gpu(),
        kind: DeviceKind::Gpu,
        model: "Fake H200 (not a GPU)".into(),
        memory: Some(Bytes(141 << 30)),
        gpu: Some(GpuProperties {
            multiprocessors: Some(132),
            compute_capability: Some((9, 0)),
            pci_address: "00000000:10:00.0".into(),
            driver: "580.159.03".into(),
            cuda: Some((13, 0)),
            mig: Mig::Off,
            compute_mode: ComputeMode::Default,
            peers: Vec::new(),
        }),
        condition: Condition::default(),
    };
    // Whether it can be shared depends on the search path of this test.
    assert_eq!(Device { condition: Condition::default(), ..only(&bench) }, expected);
}

#[test]
fn every_reason_for_having_no_gpu_is_distinguished() {
    let bench = Bench::new();
    let refusal = |start: LibraryStart| {
        bench.world.edit_library(|library| library.start = start).unwrap();
        NvmlSession::open(Some(&bench.installed.nvml)).unwrap_err()
    };
    assert!(matches!(refusal(LibraryStart::DriverNotLoaded), GpusUnavailable::NoDriver));
    assert!(matches!(refusal(LibraryStart::VersionMismatch), GpusUnavailable::VersionMismatch));
    assert!(matches!(refusal(LibraryStart::NoPermission), GpusUnavailable::NoPermission));

    let none = Bench::new();
    fs::write(none.world.root().join("gpus.json"), "{}").unwrap();
    assert!(matches!(NvmlSession::open(Some(&none.installed.nvml)).unwrap_err(), GpusUnavailable::NoDevices));

    fs::remove_file(&none.installed.nvml).unwrap();
    assert!(matches!(
        NvmlSession::open(Some(&none.installed.nvml)).unwrap_err(),
        GpusUnavailable::NoLibrary { .. }
    ));
}

#[test]
fn a_gpu_that_does_not_answer_hides_no_other() {
    let bench = Bench::of(vec![FakeGpu::numbered(0), FakeGpu::numbered(1)]);
    bench.script(|gpu| _ = gpu.faults.insert("*".into(), NvmlFault::Lost));
    let [first, second] = open(&bench).devices().try_into().unwrap();
    let lost = first.unwrap_err().to_string();
    assert!(lost.contains("GPU 0") && lost.contains("lost"), "{lost}");
    assert_eq!(second.unwrap().id, DeviceId(FakeGpu::numbered(1).uuid.into()));
}

#[test]
fn properties_that_a_gpu_does_not_report_are_none() {
    let bench = Bench::of(vec![FakeGpu { mig: Divided::Unknown, ..FakeGpu::numbered(0) }]);
    let silent =
        ["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetNumGpuCores", "nvmlDeviceGetCudaComputeCapability"];
    bench.script(|gpu| gpu.faults.extend(silent.map(|name| (name.to_owned(), NvmlFault::NotSupported))));
    let device = only(&bench);
    let facts = device.gpu.unwrap();
    assert_eq!(
        (device.memory, facts.multiprocessors, facts.compute_capability, facts.mig),
        (None, None, None, Mig::Off)
    );
}

#[test]
fn modes_that_forbid_sharing_are_seen() {
    let exclusive = FakeGpu { compute_mode: Mode::ExclusiveProcess, ..FakeGpu::numbered(0) };
    let bench = Bench::of(vec![exclusive]);
    assert_eq!(only(&bench).gpu.unwrap().compute_mode, ComputeMode::ExclusiveProcess);
    bench.script(|gpu| gpu.compute_mode = Mode::Prohibited);
    let prohibited = only(&bench);
    assert_eq!(prohibited.gpu.unwrap().compute_mode, ComputeMode::Prohibited);
    assert!(matches!(prohibited.condition.health, Health::Fenced(why) if why.contains("nvidia-smi -c")));
    bench.script(|gpu| gpu.mig = Divided::On);
    assert_eq!(only(&bench).gpu.unwrap().mig, Mig::On);
}

#[test]
fn peers_are_reached_over_links_where_there_are_any_and_over_the_bus_elsewhere() {
    let [mut a, mut b, mut c] = [0, 1, 2].map(FakeGpu::numbered);
    a.peers = [(b.uuid.clone(), Topology::NvLinks(12)), (c.uuid.clone(), Topology::HostBridge)].into();
    b.peers = [(a.uuid.clone(), Topology::NvLinks(12)), (c.uuid.clone(), Topology::Node)].into();
    c.peers = [(a.uuid.clone(), Topology::HostBridge)].into();
    let ids = [&a, &b, &c].map(|gpu| DeviceId(gpu.uuid.as_str().into()));
    let bench = Bench::of(vec![a, b, c]);
    let peers: Vec<Vec<GpuPeer>> =
        open(&bench).devices().into_iter().map(|device| device.unwrap().gpu.unwrap().peers).collect();
    let peer = |number: usize, path| GpuPeer { device: ids[number].clone(), path };
    assert_eq!(peers[0], [peer(1, PeerPath::NvLink(12)), peer(2, PeerPath::HostBridge)]);
    assert_eq!(peers[1], [peer(0, PeerPath::NvLink(12)), peer(2, PeerPath::NumaNode)]);
    assert_eq!(peers[2], [peer(0, PeerPath::HostBridge), peer(1, PeerPath::System)]);
}

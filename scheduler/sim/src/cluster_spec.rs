//! Parses clusters from text: `16x8:V100@25g` is 16 machines with 8 V100 each and a 25 Gb/s network.
//!
//! Groups are joined by `+`, the bandwidth between the devices of a machine follows a slash
//! (`4x8:H100@400g/450GB`), memory may follow the model (`2x4:A100-40G@100g`), and cores and memory of a
//! machine follow a comma (`8x8:V100@25g,24c500G`).

use std::str::FromStr;

use cohabit_policy::interference::{GPU_MODELS, GpuModel};
use cohabit_types::{Bandwidth, Bytes, HostShare, LinkBandwidths};

use crate::machine_spec::{DEFAULT_INTERCONNECT_BANDWIDTH, DEFAULT_NETWORK_BANDWIDTH, MachineSpec};

/// The largest accepted number of machines.
const MAX_MACHINES: u32 = 100_000;
/// The largest accepted number of cores of a machine.
const MAX_CORES: u32 = 4_096;
/// The largest accepted number of devices in a machine.
const MAX_DEVICES_PER_MACHINE: u32 = 1_024;

/// A cluster of one or more groups of equal machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSpec {
    groups: Vec<Group>,
}

/// A group of equal machines.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    machines: u32,
    devices: u32,
    model: String,
    memory: Bytes,
    links: LinkBandwidths,
    /// Cores and host memory of a machine, where they are given.
    host: Option<HostShare>,
}

/// Why a text does not describe a cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseClusterError {
    /// The text does not have the form of a group.
    #[error(
        "invalid machine group '{0}': expected MACHINESxDEVICES:MODEL@NETWORK, for example 16x8:V100@25g"
    )]
    Form(String),
    /// A number is malformed or out of range.
    #[error("invalid number of {what} '{text}' in '{group}': expected a number from 1 to {most}")]
    Number {
        /// The text of the number.
        text: String,
        /// The group that contains it.
        group: String,
        /// What the number counts.
        what: &'static str,
        /// The largest accepted value.
        most: u32,
    },
    /// A bandwidth is malformed.
    #[error("in '{group}': {why}")]
    Speed {
        /// The group that contains it.
        group: String,
        /// What is wrong with it.
        why: String,
    },
    /// The cores and the memory of a machine are malformed.
    #[error("'{text}' in '{group}' is not the cores and the memory of a machine: write them as 24c500G")]
    Host {
        /// The text.
        text: String,
        /// The group that contains it.
        group: String,
    },
    /// The memory of this GPU model is unknown.
    #[error("unknown GPU model '{model}': the known models are {known}; for another model give its memory, for example {model}-24G", known = known_models())]
    Model {
        /// The model as written.
        model: String,
    },
}

fn known_models() -> String {
    GPU_MODELS.map(|model| model.name).join(", ")
}

impl ClusterSpec {
    /// The machines, in the order in which they are written.
    #[must_use]
    pub fn shapes(&self) -> Vec<MachineSpec> {
        let all = self.groups.iter().flat_map(|group| (0..group.machines).map(move |_| group));
        all.enumerate().map(|(number, group)| group.shape(number)).collect()
    }

    /// Whether the cores and the memory of every machine are given.
    #[must_use]
    pub fn has_host_resources(&self) -> bool {
        self.groups.iter().all(|group| group.host.is_some())
    }

    /// The total number of devices.
    #[must_use]
    pub fn devices(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.machines) * u64::from(group.devices)).sum()
    }
}

impl Group {
    fn shape(&self, number: usize) -> MachineSpec {
        let machine = MachineSpec::new(&format!("node-{number}"), self.devices)
            .with_gpu(&self.model, self.memory)
            .with_links(self.links);
        match self.host {
            Some(HostShare { cpus, memory }) => MachineSpec { cpus, memory, ..machine },
            None => machine,
        }
    }
}

impl FromStr for ClusterSpec {
    type Err = ParseClusterError;
    fn from_str(text: &str) -> Result<ClusterSpec, ParseClusterError> {
        let groups = text.split('+').map(|group| group.trim().parse()).collect::<Result<_, _>>()?;
        Ok(ClusterSpec { groups })
    }
}

impl FromStr for Group {
    type Err = ParseClusterError;
    fn from_str(text: &str) -> Result<Group, ParseClusterError> {
        let form = || ParseClusterError::Form(text.to_owned());
        let (hardware, host) =
            text.split_once(',').map_or((text, None), |(hardware, host)| (hardware, Some(host)));
        let (size, rest) = hardware.split_once(':').ok_or_else(form)?;
        let (machines, devices) = size.split_once('x').ok_or_else(form)?;
        let (gpu, links) = rest.split_once('@').map_or((rest, None), |(gpu, links)| (gpu, Some(links)));
        let (model, memory) = model_and_memory(gpu.trim()).ok_or_else(form)??;
        Ok(Group {
            machines: number(machines, text, "machines", MAX_MACHINES)?,
            devices: number(devices, text, "devices", MAX_DEVICES_PER_MACHINE)?,
            model,
            memory,
            links: links_of(links, text)?,
            host: host.map(|host| host_of(host, text)).transpose()?,
        })
    }
}

fn number(text: &str, group: &str, what: &'static str, most: u32) -> Result<u32, ParseClusterError> {
    let count = text.trim().parse().ok().filter(|count| (1..=most).contains(count));
    count.ok_or_else(|| ParseClusterError::Number { text: text.into(), group: group.into(), what, most })
}

/// Parses `V100`, whose memory is known, or `V100-32G`; `None` for an empty text.
fn model_and_memory(text: &str) -> Option<Result<(String, Bytes), ParseClusterError>> {
    let written = text.rsplit_once('-').and_then(|(model, size)| Some((model, size.parse::<Bytes>().ok()?)));
    if let Some((model, memory)) = written.filter(|(model, memory)| !model.is_empty() && memory.0 > 0) {
        return Some(Ok((model.to_owned(), memory)));
    }
    let known = GpuModel::by_name(text).map(|model| (model.name.to_owned(), model.memory));
    (!text.is_empty()).then(|| known.ok_or_else(|| ParseClusterError::Model { model: text.to_owned() }))
}

/// Parses `24c500G`: cores and memory of a machine.
fn host_of(text: &str, group: &str) -> Result<HostShare, ParseClusterError> {
    let host = text.trim().split_once('c').and_then(|(cpus, memory)| {
        let cpus = cpus.parse().ok().filter(|cpus| (1..=MAX_CORES).contains(cpus))?;
        let memory = memory.parse::<Bytes>().ok().filter(|memory| memory.0 > 0)?;
        Some(HostShare { cpus, memory })
    });
    host.ok_or_else(|| ParseClusterError::Host { text: text.to_owned(), group: group.to_owned() })
}

fn links_of(text: Option<&str>, group: &str) -> Result<LinkBandwidths, ParseClusterError> {
    let speed = |text: &str| {
        text.parse::<Bandwidth>()
            .map_err(|error| ParseClusterError::Speed { group: group.to_owned(), why: error.to_string() })
    };
    // A slash separates the two bandwidths and may also be part of a unit: 25Gb/s.
    let text = text.unwrap_or("").replace("/s", "");
    let (network, interconnect) = match text.split_once('/') {
        Some((network, interconnect)) => (network, Some(interconnect)),
        None => (text.as_str(), None),
    };
    let network = if network.is_empty() { DEFAULT_NETWORK_BANDWIDTH } else { speed(network)? };
    let interconnect = interconnect.map_or(Ok(DEFAULT_INTERCONNECT_BANDWIDTH), speed)?;
    Ok(LinkBandwidths { network: Some(network), interconnect: Some(interconnect) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(text: &str) -> Vec<MachineSpec> {
        text.parse::<ClusterSpec>().unwrap().shapes()
    }

    fn refusal(text: &str) -> String {
        text.parse::<ClusterSpec>().unwrap_err().to_string()
    }

    #[test]
    fn a_group_gives_machines_devices_model_and_bandwidths() {
        let shapes = shapes("16x8:V100@25g");
        assert_eq!(shapes.len(), 16);
        assert_eq!((shapes[15].name.as_str(), shapes[15].devices), ("node-15", 8));
        assert_eq!((shapes[0].model.as_str(), shapes[0].device_memory), ("V100", Some(Bytes(16 << 30))));
        let links = LinkBandwidths {
            network: Some(DEFAULT_NETWORK_BANDWIDTH),
            interconnect: Some(DEFAULT_INTERCONNECT_BANDWIDTH),
        };
        assert_eq!(shapes[0].links, links);
    }

    #[test]
    fn machines_are_numbered_across_groups() {
        let spec: ClusterSpec = "8x8:V100@100g/300GB/s + 4x4:K80@10Gb/s".parse().unwrap();
        let shapes = spec.shapes();
        assert_eq!((shapes.len(), spec.devices()), (12, 80));
        assert_eq!(shapes[0].links.network, Some(Bandwidth(100_000_000_000)));
        assert_eq!(shapes[0].links.interconnect, Some(Bandwidth(2_400_000_000_000)));
        assert_eq!((shapes[8].name.as_str(), shapes[8].model.as_str()), ("node-8", "K80"));
        assert_eq!(shapes[8].links.network, Some(Bandwidth(10_000_000_000)));
    }

    #[test]
    fn cores_and_memory_of_a_machine_follow_a_comma() {
        let shape = &shapes("8x8:V100@25g,24c500G")[7];
        assert_eq!((shape.cpus, shape.memory, shape.devices), (24, Bytes(500 << 30), 8));
        assert_eq!(shapes("1x1:V100,4c1T+1x1:V100")[0].cpus, 4);
        let is_given = |text: &str| text.parse::<ClusterSpec>().unwrap().has_host_resources();
        assert!(is_given("1x1:V100,4c1T+1x1:V100,4c1T") && !is_given("1x1:V100,4c1T+1x1:V100"));
    }

    #[test]
    fn memory_is_optional_for_known_models_and_required_for_others() {
        assert_eq!(shapes("1x1:V100-32G")[0].device_memory, Some(Bytes(32 << 30)));
        assert_eq!(shapes("1x1:v100")[0].model, "V100");
        let own = &shapes("1x1:MI-300-192G@1g")[0];
        assert_eq!((own.model.as_str(), own.device_memory), ("MI-300", Some(Bytes(192 << 30))));
        assert!(refusal("1x1:Z9").contains("the known models are K80, P100, V100"), "{}", refusal("1x1:Z9"));
        assert!(refusal("1x1:Z9").ends_with("for example Z9-24G"));
    }

    #[test]
    fn invalid_text_is_refused_with_a_reason() {
        for (text, words) in [
            ("", "invalid machine group ''"),
            ("16", "for example 16x8:V100@25g"),
            ("16x8", "invalid machine group"),
            ("16x8:", "invalid machine group"),
            ("0x8:V100", "invalid number of machines '0' in '0x8:V100': expected a number from 1 to 100000"),
            ("1x9999:V100", "expected a number from 1 to 1024"),
            ("axb:V100", "'a' in"),
            ("1x1:V100@fast", "in '1x1:V100@fast': 'fast' is not a bandwidth"),
            ("1x1:V100@25g/x", "'x' is not a bandwidth"),
            ("1x1:V100+", "invalid machine group ''"),
            (
                "1x1:V100,24",
                "'24' in '1x1:V100,24' is not the cores and the memory of a machine: write them as",
            ),
            ("1x1:V100,0c1G", "write them as 24c500G"),
            ("1x1:V100,2c0", "write them as 24c500G"),
        ] {
            assert!(refusal(text).contains(words), "{text}: {}", refusal(text));
        }
    }
}

//! `start.json`: everything an executor needs to start a rank, and a later daemon to adopt it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use cohabit_gpu::DeviceRange;
use cohabit_gpu::mps::{ClientRemoval, MpsDirectory};
use cohabit_types::{Bytes, DeviceId, FormatVersion, JobSpec, RankId, Role, Share, Span, Time};
use cohabit_worker_core::{GpuAccess, MpsLimits, RankStart};
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::cgroup::RankCgroup;
use crate::log::LogLimits;
use crate::records::StartRecord;
use crate::version::VERSION;

/// The fields with a default may be missing in version 1. Large values are borrowed when a file is written: a
/// worker may start a thousand ranks a second.
#[derive(Serialize, Deserialize)]
pub(super) struct StartFile<'a> {
    #[serde(default)]
    pub(super) version: FormatVersion,
    rank: RankPart<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workdir: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<PathBuf>,
    environment: Cow<'a, BTreeMap<String, String>>,
    orphan_grace: Span,
    #[serde(default)]
    lease_term: Option<Span>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leased_at: Option<Time>,
    log: LogPart,
    #[serde(default)]
    booted_at: Option<Time>,
    #[serde(default)]
    removal: Option<RemovalPart>,
    #[serde(default)]
    account: Option<AccountPart>,
    #[serde(default)]
    cgroup: Option<CgroupPart>,
}

#[derive(Serialize, Deserialize)]
struct RankPart<'a> {
    rank: RankId,
    spec: Cow<'a, JobSpec>,
    user: String,
    #[serde(default)]
    account: String,
    #[serde(default = "least_role")]
    role: Role,
    #[serde(default)]
    private_uid: Option<u32>,
    devices: Vec<DeviceId>,
    share: Share,
    #[serde(default)]
    access: AccessPart,
    #[serde(default)]
    rendezvous_port: Option<u16>,
    environment: Cow<'a, BTreeMap<Cow<'static, str>, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_after: Option<Span>,
}

/// The role only matters before the rank starts, so one that a file of version 1 does not name may be any.
const fn least_role() -> Role {
    Role::User
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AccessPart {
    #[default]
    None,
    Exclusive,
    Mps(LimitsPart),
    TimeSliced(Bytes),
}

#[derive(Serialize, Deserialize)]
struct LimitsPart {
    memory: Bytes,
    percentage: Option<u32>,
}

#[derive(Serialize, Deserialize)]
struct LogPart {
    segment: Bytes,
    cap: Bytes,
}

#[derive(Serialize, Deserialize)]
struct RemovalPart {
    program: PathBuf,
    home: PathBuf,
    environment: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct AccountPart {
    name: String,
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    home: PathBuf,
    shell: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct CgroupPart {
    attempt: PathBuf,
    rank: u32,
    cpus: u32,
    memory: Option<Bytes>,
    processes: u64,
    #[serde(default)]
    closed_devices: Vec<DeviceRangePart>,
}

#[derive(Serialize, Deserialize)]
struct DeviceRangePart {
    major: u32,
    first: u32,
    last: u32,
}

impl<'a> From<&'a StartRecord> for StartFile<'a> {
    fn from(record: &'a StartRecord) -> StartFile<'a> {
        StartFile {
            version: VERSION,
            rank: (&record.rank).into(),
            workdir: record.workdir.clone(),
            program: record.program.clone(),
            environment: Cow::Borrowed(&record.environment),
            orphan_grace: record.orphan_grace,
            lease_term: record.lease_term,
            leased_at: record.leased_at,
            log: LogPart { segment: record.log.segment, cap: record.log.cap },
            booted_at: record.booted_at,
            removal: record.removal.clone().map(RemovalPart::from),
            account: record.account.clone().map(AccountPart::from),
            cgroup: record.cgroup.clone().map(CgroupPart::from),
        }
    }
}

impl From<StartFile<'_>> for StartRecord {
    fn from(file: StartFile<'_>) -> StartRecord {
        StartRecord {
            rank: file.rank.into(),
            workdir: file.workdir,
            program: file.program,
            environment: file.environment.into_owned(),
            orphan_grace: file.orphan_grace,
            lease_term: file.lease_term,
            leased_at: file.leased_at,
            log: LogLimits { segment: file.log.segment, cap: file.log.cap },
            booted_at: file.booted_at,
            removal: file.removal.map(ClientRemoval::from),
            account: file.account.map(Account::from),
            cgroup: file.cgroup.map(RankCgroup::from),
        }
    }
}

impl<'a> From<&'a RankStart> for RankPart<'a> {
    fn from(start: &'a RankStart) -> RankPart<'a> {
        RankPart {
            rank: start.rank,
            spec: Cow::Borrowed(&start.spec),
            user: start.user.clone(),
            account: start.account.clone(),
            role: start.role,
            private_uid: start.private_uid,
            devices: start.devices.clone(),
            share: start.share,
            access: start.access.into(),
            rendezvous_port: start.rendezvous_port,
            environment: Cow::Borrowed(&start.environment),
            note: start.note.as_deref().map(Cow::Borrowed),
            idle_after: start.idle_after,
        }
    }
}

impl From<RankPart<'_>> for RankStart {
    fn from(part: RankPart<'_>) -> RankStart {
        RankStart {
            rank: part.rank,
            spec: part.spec.into_owned().into(),
            user: part.user,
            account: part.account,
            role: part.role,
            private_uid: part.private_uid,
            devices: part.devices,
            share: part.share,
            access: part.access.into(),
            rendezvous_port: part.rendezvous_port,
            environment: part.environment.into_owned(),
            note: part.note.map(Cow::into_owned),
            idle_after: part.idle_after,
            application: None,
            place: None,
            node_rank: 0,
            checkpoints: None,
        }
    }
}

impl From<GpuAccess> for AccessPart {
    fn from(access: GpuAccess) -> AccessPart {
        match access {
            GpuAccess::None => AccessPart::None,
            GpuAccess::Exclusive => AccessPart::Exclusive,
            GpuAccess::Mps(MpsLimits { memory, percentage }) => {
                AccessPart::Mps(LimitsPart { memory, percentage })
            }
            GpuAccess::TimeSliced(memory) => AccessPart::TimeSliced(memory),
        }
    }
}

impl From<AccessPart> for GpuAccess {
    fn from(part: AccessPart) -> GpuAccess {
        match part {
            AccessPart::None => GpuAccess::None,
            AccessPart::Exclusive => GpuAccess::Exclusive,
            AccessPart::Mps(LimitsPart { memory, percentage }) => {
                GpuAccess::Mps(MpsLimits { memory, percentage })
            }
            AccessPart::TimeSliced(memory) => GpuAccess::TimeSliced(memory),
        }
    }
}

impl From<ClientRemoval> for RemovalPart {
    fn from(removal: ClientRemoval) -> RemovalPart {
        let ClientRemoval { program, directory, environment } = removal;
        RemovalPart { program, home: directory.path().to_owned(), environment }
    }
}

impl From<RemovalPart> for ClientRemoval {
    fn from(part: RemovalPart) -> ClientRemoval {
        let RemovalPart { program, home, environment } = part;
        ClientRemoval { program, directory: MpsDirectory::existing(home), environment }
    }
}

impl From<Account> for AccountPart {
    fn from(account: Account) -> AccountPart {
        let Account { name, uid, gid, groups, home, shell } = account;
        AccountPart { name, uid, gid, groups, home, shell }
    }
}

impl From<AccountPart> for Account {
    fn from(part: AccountPart) -> Account {
        let AccountPart { name, uid, gid, groups, home, shell } = part;
        Account { name, uid, gid, groups, home, shell }
    }
}

impl From<RankCgroup> for CgroupPart {
    fn from(cgroup: RankCgroup) -> CgroupPart {
        let RankCgroup { attempt, rank, cpus, memory, processes, closed_devices } = cgroup;
        let closed_devices = closed_devices.into_iter().map(DeviceRangePart::from).collect();
        CgroupPart { attempt, rank, cpus, memory, processes, closed_devices }
    }
}

impl From<CgroupPart> for RankCgroup {
    fn from(part: CgroupPart) -> RankCgroup {
        let CgroupPart { attempt, rank, cpus, memory, processes, closed_devices } = part;
        let closed_devices = closed_devices.into_iter().map(DeviceRange::from).collect();
        RankCgroup { attempt, rank, cpus, memory, processes, closed_devices }
    }
}

impl From<DeviceRange> for DeviceRangePart {
    fn from(range: DeviceRange) -> DeviceRangePart {
        let DeviceRange { major, first, last } = range;
        DeviceRangePart { major, first, last }
    }
}

impl From<DeviceRangePart> for DeviceRange {
    fn from(part: DeviceRangePart) -> DeviceRange {
        let DeviceRangePart { major, first, last } = part;
        DeviceRange { major, first, last }
    }
}

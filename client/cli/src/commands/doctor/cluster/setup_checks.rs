//! The setup of the head: its address, its settings and its files.

use std::net::SocketAddr;

use cohabit_client::types::{HeadStatus, PrivateData, Span, TokenFileStatus};

use super::super::findings::Finding;

const ADDRESS: &str = "address";
const PRIVATE_DATA: &str = "private data";
const LIFETIME: &str = "token lifetime";
const ADMIN_TOKEN: &str = "admin token";
const JOURNAL: &str = "journal";
/// File systems in memory, which a restart of the machine empties.
const VOLATILE: [&str; 2] = ["tmpfs", "ramfs"];
/// File systems that end with their container.
const LAYERED: [&str; 2] = ["overlay", "fuse.fuse-overlayfs"];

pub(super) fn check(status: &HeadStatus) -> Vec<Finding> {
    vec![
        address(&status.listens_on),
        private_data(status.private_data),
        lifetime(status.user_token_lifetime),
        admin_token(&status.admin_token_file),
        journal(status.journal_file_system.as_deref()),
    ]
}

fn address(text: &str) -> Finding {
    match text.parse::<SocketAddr>().map(|address| address.ip()) {
        Ok(ip) if ip.is_unspecified() => Finding::warning(
            ADDRESS,
            format!("the head listens on every interface of its machine ({text})"),
            "name the interface of the cluster's network with --listen, or close the port to others in a firewall",
        ),
        Ok(ip) if ip.is_loopback() => Finding::warning(
            ADDRESS,
            format!("only programs on the head's machine reach it ({text})"),
            "name another address with --listen",
        ),
        Ok(_) => Finding::ok(ADDRESS, format!("the head listens on {text}")),
        Err(error) => Finding::error(ADDRESS, format!("not checked: '{text}' ({error})"), "check --listen"),
    }
}

fn private_data(setting: PrivateData) -> Finding {
    match setting {
        PrivateData::On => {
            Finding::ok(PRIVATE_DATA, "users see only their own commands, names and directories")
        }
        PrivateData::Off => Finding::warning(
            PRIVATE_DATA,
            "users see the commands, names and directories of all jobs",
            "start the head with --private-data on, unless that is intended",
        ),
    }
}

fn lifetime(of_users: Option<Span>) -> Finding {
    match of_users {
        Some(lifetime) => Finding::ok(LIFETIME, format!("new tokens of users expire after {lifetime}")),
        None => Finding::warning(
            LIFETIME,
            "new tokens of users never expire",
            "set token-lifetime of the head, for example to 365d",
        ),
    }
}

fn admin_token(file: &TokenFileStatus) -> Finding {
    match file {
        TokenFileStatus::Missing => Finding::ok(ADMIN_TOKEN, "the head's directory has no admin.token"),
        TokenFileStatus::Mode(mode) if mode & 0o077 == 0 => {
            Finding::ok(ADMIN_TOKEN, format!("only the head's account can read admin.token (mode {mode:o})"))
        }
        TokenFileStatus::Mode(mode) => Finding::error(
            ADMIN_TOKEN,
            format!("other accounts on the head's machine can read admin.token (mode {mode:o})"),
            "run chmod 600 on it, create another admin token, and revoke this one",
        ),
        TokenFileStatus::Unknown(why) => {
            Finding::error(ADMIN_TOKEN, format!("not checked ({why})"), "check the mode of admin.token")
        }
    }
}

fn journal(file_system: Option<&str>) -> Finding {
    match file_system {
        None => Finding::warning(
            JOURNAL,
            "not checked: the kind of its file system is not known",
            "keep it on a local disk (`df` shows where it is)",
        ),
        Some(kind) if VOLATILE.contains(&kind) => Finding::error(
            JOURNAL,
            format!("it is in memory ({kind}): a restart of the machine loses all jobs and tokens"),
            "choose a directory on a disk with --state",
        ),
        Some(kind) if LAYERED.contains(&kind) => Finding::warning(
            JOURNAL,
            format!("it is in the layer of a container ({kind}), and ends with it"),
            "mount a directory of the machine there",
        ),
        Some(kind) => Finding::ok(JOURNAL, format!("it is on a local file system ({kind})")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::findings::Diagnosis;
    use super::*;

    fn tight() -> HeadStatus {
        HeadStatus {
            listens_on: "10.0.0.1:7070".into(),
            private_data: PrivateData::On,
            user_token_lifetime: Some(Span::from_secs(86_400)),
            admin_token_file: TokenFileStatus::Mode(0o600),
            journal_file_system: Some("ext4".into()),
        }
    }

    fn statuses(status: &HeadStatus) -> Vec<Diagnosis> {
        check(status).iter().map(|finding| finding.status).collect()
    }

    #[test]
    fn a_tight_setup_passes() {
        assert_eq!(statuses(&tight()), [Diagnosis::Ok; 5]);
        let missing = HeadStatus { admin_token_file: TokenFileStatus::Missing, ..tight() };
        assert_eq!(statuses(&missing), [Diagnosis::Ok; 5]);
    }

    #[test]
    fn a_loose_setup_has_a_finding_for_each_part() {
        let loose = HeadStatus {
            listens_on: "0.0.0.0:7070".into(),
            private_data: PrivateData::Off,
            user_token_lifetime: None,
            admin_token_file: TokenFileStatus::Mode(0o644),
            journal_file_system: Some("tmpfs".into()),
        };
        let (warning, error) = (Diagnosis::Warning, Diagnosis::Error);
        assert_eq!(statuses(&loose), [warning, warning, warning, error, error]);
    }

    #[test]
    fn what_cannot_be_checked_is_a_finding() {
        let unknown = HeadStatus {
            listens_on: "nowhere".into(),
            admin_token_file: TokenFileStatus::Unknown("permission denied".into()),
            journal_file_system: None,
            ..tight()
        };
        let found = check(&unknown);
        for part in [0, 3, 4] {
            assert_ne!(found[part].status, Diagnosis::Ok);
            assert!(found[part].observed.contains("not checked"), "{}", found[part].observed);
        }
    }
}

//! The walk of an admin: several machines, users, nodes out of service, metrics, and a head that comes back
//! from its backup, as docs/OPERATIONS.md shows.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use crate::document::Section;
use crate::kit::{Walk, until};

const DOCUMENT: &str = "docs/OPERATIONS.md";

/// The state of a node, as the admin sees it.
fn node_state(walk: &Walk, name: &str) -> String {
    let nodes = walk.json("cohabit nodes");
    let found = nodes["nodes"].as_array().unwrap().iter().find(|node| node["name"] == name);
    found.map_or_else(String::new, |node| node["state"].as_str().unwrap().to_owned())
}

/// Copies a token from the head's machine to another one, where only its owner may read it.
fn copy_token(walk: &mut Walk, from: &str, machine: &str, to: &str) {
    walk.go_to("head");
    let token = fs::read_to_string(walk.root().join(from)).unwrap();
    walk.go_to(machine);
    walk.write(to, &token);
    fs::set_permissions(walk.path(to), fs::Permissions::from_mode(0o600)).unwrap();
}

/// The only command of a block of one line.
fn single(commands: Vec<String>) -> String {
    let [command]: [String; 1] = commands.try_into().unwrap();
    command
}

/// A head and workers on machines of their own. Returns the address of the head.
fn several_machines(walk: &mut Walk, section: &Section) -> String {
    let [head, worker, speeds, tokens, trial]: [Vec<String>; 5] = section.commands().try_into().unwrap();
    walk.steps(head);
    let (ready, _) = section
        .block_with("ready:")
        .split_once("0.0.0.0")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert!(walk.daemon_output().starts_with(&ready), "{}", walk.daemon_output());
    let address = walk.address();
    walk.substitute("head.lab:7070", &address);
    copy_token(walk, "var/lib/cohabit/worker.token", "gpu-a", "worker.token");
    let worker = single(worker);
    walk.step(&worker);
    copy_token(walk, "var/lib/cohabit/worker.token", "gpu-b", "worker.token");
    walk.steps(speeds);
    walk.go_to("head");
    until("both nodes are up", || ["gpu-a", "gpu-b"].iter().all(|node| node_state(walk, node) == "UP"));
    section.says("`25g` is 25 Gb/s, `300GB` is 300 GB/s");
    let nodes = walk.json("cohabit nodes");
    let fast = nodes["nodes"].as_array().unwrap().iter().find(|node| node["name"] == "gpu-b").unwrap();
    let speed = |key: &str| fast["links"][key].as_f64();
    assert_eq!((speed("network"), speed("interconnect")), (Some(25e9 / 8.0), Some(300e9)), "{fast}");

    own_tokens(walk, section, tokens);
    trial_on_one_machine(walk, trial);
    address
}

/// Each machine gets a token of its own, and the shared one is revoked.
fn own_tokens(walk: &mut Walk, section: &Section, mut commands: Vec<String>) {
    walk.steps_before(&mut commands, "cohabit worker start");
    let mode = fs::metadata(walk.path("w1.token")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    copy_token(walk, "work/w1.token", "w1", "w1.token");
    walk.steps_before(&mut commands, "cohabit token revoke");
    section.says("each lets in one worker, of that name");
    copy_token(walk, "work/w1.token", "stranger", "w1.token");
    let refused = "cohabit worker start --token-file w1.token --name stranger --join";
    let head = walk.substituted("head.lab:7070");
    let refused = walk.try_command(&format!("{refused} {head}"));
    assert!(refused.code != 0 && refused.stderr.contains("w1"), "{refused:?}");
    walk.go_to("head");
    walk.steps(commands);
    section.says("a worker that still uses the shared one loses its link");
    until("the workers with the shared token are cut off", || {
        ["gpu-a", "gpu-b"].iter().all(|node| node_state(walk, node) == "UNREACHABLE")
    });
    assert_eq!(node_state(walk, "w1"), "UP");
}

/// A cluster of its own, on one machine.
fn trial_on_one_machine(walk: &mut Walk, mut commands: Vec<String>) {
    walk.go_to("trial");
    walk.substitute("/tmp", "{machine}");
    let head = commands.remove(0);
    walk.step(&head);
    let (_, port) = walk.address().rsplit_once(':').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    walk.substitute("PORT", &port);
    walk.steps(commands);
    for node in ["w1", "w2"] {
        walk.ran("cohabit nodes").prints(node);
    }
    assert_eq!(walk.ran("cohabit run").stdout, "hello\n");
    for daemon in ["cohabit worker start", "cohabit worker start", "cohabit head start"] {
        walk.stop(daemon);
    }
    for text in ["/tmp", "PORT"] {
        walk.end_substitution(text);
    }
    walk.go_to("head");
}

/// For how many days a token is good.
fn days_of_life(walk: &Walk, name: &str) -> i64 {
    let list = walk.json("cohabit token list");
    let token = list["tokens"].as_array().unwrap().iter().find(|token| token["name"] == name).unwrap();
    let at = |key: &str| token[key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    (at("expires_at") - at("created_at")).get_seconds() / (24 * 60 * 60)
}

/// Users with tokens, who may do what users may.
fn users(walk: &mut Walk, section: &Section) {
    let [mut tokens, private]: [Vec<String>; 2] = section.commands().try_into().unwrap();
    walk.steps_before(&mut tokens, "cohabit token revoke ada");
    section.says("`--out` writes the token to a new file of mode 0600 and prints no secret");
    let secret = walk.read("ada.token");
    assert!(!walk.ran("cohabit token create --role user --name ada").stdout.contains(secret.trim()));
    for token in ["ada", "guest", "wall"] {
        walk.ran("cohabit token list").prints(token);
    }
    section.says("A token of a user or viewer expires after a year");
    assert_eq!((days_of_life(walk, "ada"), days_of_life(walk, "guest")), (365, 90));
    section.says("In the last 30 days, commands warn the user on a terminal");
    assert!(!walk.ok("cohabit nodes").contains("expire soon"), "none of these does");

    as_ada(walk, section);
    as_viewer(walk, section);
    let job = walk.ok("cohabit list --output json");
    assert!(job.contains("\"ada\""), "{job}");
    walk.steps(tokens);
    walk.ran("cohabit token revoke ada").prints("cohabit cancel --user ada");
    let [cancel]: [String; 1] = section
        .commands_in_prose("cohabit ")
        .into_iter()
        .filter(|it| it.contains("--user"))
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    walk.step(&cancel);
    walk.ran("cohabit cancel --user ada").prints("Cancelled job");
    walk.go_to("ada");
    walk.try_command("env -u COHABIT_STATE cohabit list").ends_with(77, "was revoked");

    private_data(walk, section, single(private));
}

/// Ada's configuration is what the document shows.
fn as_ada(walk: &mut Walk, section: &Section) {
    copy_token(walk, "work/ada.token", "ada", "../home/.config/cohabit/ada.token");
    walk.substitute("/home/ada", "{machine}/home");
    let configuration = walk.substituted(&section.block_with("token-file ="));
    walk.end_substitution("/home/ada");
    walk.write("../home/.config/cohabit/config.toml", &configuration);
    let ada = "env -u COHABIT_STATE cohabit";
    walk.ok(&format!("{ada} submit --name mine -- sleep 600"));
    walk.try_command(&format!("{ada} worker drain w1")).ends_with(77, "only an admin token can drain");
    walk.go_to("head");
    let others = walk.ok("cohabit submit --hold --output quiet --name secret -- true");
    walk.go_to("ada");
    section.says("Users see all jobs, and change and read the output of their own");
    assert!(walk.ok(&format!("{ada} list")).contains("secret"));
    let refused = walk.try_command(&format!("{ada} cancel {others}"));
    assert_eq!(refused.code, 77, "{refused:?}");
    walk.go_to("head");
}

fn as_viewer(walk: &mut Walk, section: &Section) {
    let address = walk.substituted("head.lab:7070");
    section.says("every change is refused");
    let viewer = format!("COHABIT_HEAD={address} COHABIT_TOKEN_FILE=wall.token cohabit");
    assert!(walk.ok(&format!("{viewer} list")).contains("mine"));
    walk.try_command(&format!("{viewer} submit -- true")).ends_with(77, "cannot submit jobs");
}

/// The head is started again, so that names are for their owners and admins.
fn private_data(walk: &mut Walk, section: &Section, command: String) {
    walk.go_to("head");
    let address = walk.substituted("head.lab:7070");
    walk.stop("cohabit head start");
    walk.set("COHABIT_LISTEN", &address);
    walk.step(&command);
    until("the worker is back", || node_state(walk, "w1") == "UP");
    section.says("shows them only to the job's user and to admins");
    let guest = format!("COHABIT_HEAD={address} COHABIT_TOKEN_FILE=guest.token cohabit list");
    assert!(walk.ok("cohabit list").contains("secret"));
    let seen = walk.ok(&guest);
    assert!(seen.contains("HELD") && !seen.contains("secret"), "{seen}");
}

fn out_of_service(walk: &mut Walk) {
    let section = Section::of(DOCUMENT, "## Taking a node out of service");
    let [mut commands]: [Vec<String>; 1] = section.commands().try_into().unwrap();
    // The node that is up.
    walk.substitute("gpu-a", "w1");
    walk.steps_before(&mut commands, "cohabit worker resume");
    section.says("then it is `DRAINED`, and can be switched off");
    until("nothing runs there", || node_state(walk, "w1") == "DRAINED");
    section.says("`nodes` says who drained it, when and why");
    walk.ran("cohabit nodes").prints("new power supply");
    walk.steps(commands);
    assert_eq!(node_state(walk, "w1"), "UP");
    walk.end_substitution("gpu-a");
}

/// What an exporter answers to a scrape with these headers.
fn scrape(address: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn metrics(walk: &mut Walk) {
    let section = Section::of(DOCUMENT, "## Metrics");
    let [commands]: [Vec<String>; 1] = section.commands().try_into().unwrap();
    let [open, guarded]: [String; 2] = commands.try_into().unwrap();
    // The port may be taken: the command without flags is told another one.
    walk.substitute("cohabit export   ", "cohabit export --listen 127.0.0.1:0");
    walk.step(&open);
    walk.end_substitution("cohabit export   ");
    let answer = scrape(&walk.address(), "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for metric in ["cohabit_jobs", "cohabit_node_state", "cohabit_plan_seconds_count", "cohabit_build_info"] {
        assert!(answer.contains(&format!("\n{metric}")), "{metric}: {answer}");
    }
    // The quantiles of the board need the bucket of everything.
    assert_eq!(
        answer.matches("_bucket{le=\"+Inf\"}").count(),
        answer.matches(" histogram\n").count(),
        "{answer}"
    );
    walk.substitute("127.0.0.1:9470", "127.0.0.1:0");
    walk.substitute("/etc/cohabit", "{machine}/etc/cohabit");
    walk.write("../etc/cohabit/scrape.token", "a-long-secret-for-scrapers\n");
    let token = walk.path("../etc/cohabit/scrape.token");
    fs::set_permissions(token, fs::Permissions::from_mode(0o600)).unwrap();
    walk.step(&guarded);
    section.says("names a file with the bearer token that scrapers have to send");
    assert!(scrape(&walk.address(), "").starts_with("HTTP/1.1 401"));
    let sent = scrape(&walk.address(), "Authorization: Bearer a-long-secret-for-scrapers\r\n");
    assert!(sent.starts_with("HTTP/1.1 200"), "{sent}");
    for text in ["127.0.0.1:9470", "/etc/cohabit"] {
        walk.end_substitution(text);
    }
    section.says("While the head is away a scrape fails with 503");
}

/// The command of a line for `/etc/cron.d`, as cron runs it.
fn of_cron(line: &str) -> String {
    let mut words = line.trim().splitn(7, ' ').skip(5);
    assert_eq!(words.next(), Some("cohabit"), "the account");
    words.next().unwrap().replace("\\%", "%")
}

fn backup_and_restore(walk: &mut Walk) {
    let section = Section::of(DOCUMENT, "### Backup and restore");
    let [backups]: [Vec<String>; 1] = section.commands().try_into().unwrap();
    walk.write("../backup/README", "backups\n");
    walk.substitute("/backup", "{machine}/backup");
    walk.steps(backups);
    section.says("so it has mode 0600");
    let file = walk.path("../backup/head.tar");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    section.says("`tar tf` lists what is in it, and `manifest.json` says what it is of");
    assert!(walk.ok("tar tf ../backup/head.tar").contains("manifest.json"));
    walk.step(&of_cron(&section.block_with("15 3 * * *")));
    let backups = fs::read_dir(walk.path("../backup")).unwrap().count();
    assert_eq!(backups, 3, "the note, the backup, and that of the day of the week");

    let before: u64 = walk.ok("cohabit submit --hold --output quiet -- true").trim().parse().unwrap();
    walk.stop("cohabit head start");
    let guarded = walk.address();
    let authorized = || scrape(&guarded, "Authorization: Bearer a-long-secret-for-scrapers\r\n");
    until("the exporter says that the head is away", || authorized().starts_with("HTTP/1.1 503"));
    fs::remove_dir_all(walk.root().join("var/lib/cohabit")).unwrap();
    let restore = section.commands_in_prose("cohabit ");
    let restore = restore
        .iter()
        .filter(|it| it.starts_with("cohabit head restore") || it.starts_with("cohabit head start"));
    let restore: Vec<String> = restore.cloned().collect();
    assert_eq!(restore.len(), 2, "{restore:?}");
    walk.steps(restore);
    section.says("the keys, the tokens and the id of the cluster are the same");
    until("the worker is back", || node_state(walk, "w1") == "UP");
    section.says("So the next job has a number at least 1,000,000 higher");
    let after: u64 = walk.ok("cohabit submit --hold --output quiet -- true").trim().parse().unwrap();
    assert!(after >= before + 1_000_000 - 1, "{before} {after}");
    section.says("| a job was submitted | it is lost");
    assert_eq!(walk.try_command(&format!("cohabit show {before}")).code, 66);
    section.says("is good again: revoke it again");
}

#[test]
fn an_admin_runs_a_cluster_as_the_documents_show() {
    let mut walk = Walk::new(
        "head",
        &[
            ("cargo build", "the program is there, and in PATH"),
            ("sudo install", "it would replace the program of this machine"),
            ("cohabit doctor --probe", "it would start MPS on the GPUs of this machine"),
        ],
    );
    let install = Section::of(DOCUMENT, "## Install");
    install.commands().into_iter().for_each(|commands| walk.steps(commands));
    install.says("checks a machine and says what to change");
    walk.ran("cohabit doctor").prints("RESULT");
    walk.substitute("0.0.0.0:7070", "127.0.0.1:0");
    walk.substitute("/var/lib/cohabit", "{machine}/var/lib/cohabit");
    let several = Section::of(DOCUMENT, "## Several machines");
    several_machines(&mut walk, &several);
    users(&mut walk, &Section::of(DOCUMENT, "## Users"));
    out_of_service(&mut walk);
    metrics(&mut walk);
    backup_and_restore(&mut walk);
    for command in install.commands_in_prose("cohabit ").iter().filter(|it| it.ends_with("--cluster")) {
        walk.step(command);
    }
    let findings = walk.ran("cohabit doctor --cluster");
    for check in ["worker tokens   ok", "private data", "journal", "builds          ok"] {
        findings.prints(check);
    }
    walk.finish();
}

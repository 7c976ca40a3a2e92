//! Applications whose processes run on several nodes, as the head places them and the workers start them.
//!
//! The program here is a script that shows what it was given, without its secrets.

use std::os::unix::fs::PermissionsExt;

use cohabit_client::types::{
    ApplicationWork, AttemptId, CodeSnapshot, Demand, Entrypoint, GpuRequest, JobId, JobSpec, RunnerRole,
    RunnerWork,
};
use cohabit_client::{Client, CodeFolder, Submission};
use serde_json::Value;

use crate::kit::*;

/// Prints what it finds on its standard input, and waits for a file.
const PROGRAM: &str = r#"#!/bin/sh
sed -e 's/"secret":"[^"]*"/"secret":"."/' -e 's/"token":"[^"]*"/"token":"."/'
echo
until [ -e go ]; do sleep 0.05; done
"#;

/// An application of the script.
struct Script {
    client: Client,
    code: CodeSnapshot,
    workdir: String,
}

impl Script {
    async fn store(cluster: &Cluster) -> Script {
        let path = cluster.folder().join("show.sh");
        std::fs::write(&path, PROGRAM).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let client = Client::connect_local(cluster.folder().join("head")).await.unwrap();
        let code = CodeFolder::of_program(&path, "show.sh").await.unwrap();
        client.upload_code(&code).await.unwrap();
        let workdir = cluster.folder().display().to_string();
        Script { client, code: code.snapshot(), workdir }
    }

    async fn submit(&self, entrypoint: Entrypoint, gpus: u32) -> JobId {
        let spec = JobSpec {
            name: "shown".into(),
            entrypoint,
            demand: Demand { gpus: GpuRequest::Whole(gpus), ..Demand::default() },
            code: Some(self.code.clone()),
            ..JobSpec::command(vec!["show.sh".into()], self.workdir.clone())
        };
        self.client.submit(&Submission::new(spec).unwrap()).await.unwrap().id()
    }

    async fn root(&self) -> JobId {
        let work = ApplicationWork { program: "show.sh".into(), arguments: vec![], max_gpus: None };
        self.submit(Entrypoint::Application(work), 0).await
    }

    async fn child(&self, application: AttemptId, role: RunnerRole, node: Option<&str>, gpus: u32) -> JobId {
        let node = node.map(str::to_owned);
        let work =
            RunnerWork { application, program: "show.sh".into(), role, arguments: vec![], node, ranks: 1 };
        self.submit(Entrypoint::Runner(work), gpus).await
    }
}

/// What a job printed: its access.
fn access(cluster: &Cluster, job: JobId) -> Value {
    // Of the root alone: its name stands for all processes.
    let printed = || cluster.run(&["logs", "--rank", "0", &job.to_string()]).stdout;
    until("its access is printed", || printed().contains("coordinator_node"));
    let printed = printed();
    serde_json::from_str(printed.lines().next().unwrap()).unwrap()
}

fn node_of(cluster: &Cluster, job: JobId) -> Value {
    cluster.show(&job.to_string())["attempts"][0]["ranks"][0]["node"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_children_of_an_application_run_on_several_nodes_and_know_where_the_others_are() {
    let cluster = Cluster::start(&["host:1", "host:2"]);
    let script = Script::store(&cluster).await;
    let root = script.root().await;
    cluster.until_state(&root.to_string(), "RUNNING");
    let application = root.attempt(1);
    let main = script.child(application, RunnerRole::Main, None, 0).await;
    let first = script.child(application, RunnerRole::Actor, None, 1).await;
    let second = script.child(application, RunnerRole::Actor, None, 1).await;
    let store = script.child(application, RunnerRole::Store, Some("node1"), 0).await;
    let jobs = [root, main, first, second, store];
    let nodes = jobs.map(|job| {
        cluster.until_state(&job.to_string(), "RUNNING");
        node_of(&cluster, job)
    });
    assert_eq!(nodes, ["node0", "node0", "node0", "node1", "node1"]);
    let all = jobs.map(|job| access(&cluster, job));
    let port = all[0]["port"].clone();
    assert!(port["port"].is_number(), "{}", all[0]);
    for (it, node) in all.iter().zip(&nodes) {
        assert_eq!((&it["node"], &it["coordinator_node"], &it["gpus"]), (node, &"node0".into(), &3.into()));
        assert_eq!(it["coordinator"], port);
    }
    assert!(all[1..4].iter().all(|it| it["port"].is_null()), "actors and main do not listen");
    assert!(all[4]["port"]["port"].is_number() && all[4]["port"] != port, "{}", all[4]);
    assert_eq!(all[3]["directory"], all[4]["directory"], "the processes of a node meet in one place");
    assert_ne!(all[0]["directory"], all[3]["directory"]);

    let copies = |worker: &str| cluster.folder().join(worker).join("code").join(root.to_string());
    assert!(copies("worker0").exists() && copies("worker1").exists());
    std::fs::write(cluster.folder().join("go"), "").unwrap();
    for job in jobs {
        cluster.end(&job.to_string());
    }
    until("the copies are removed", || !copies("worker0").exists() && !copies("worker1").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_stays_on_a_node_without_ports_for_applications() {
    let mut cluster = Cluster::with_head(&["--policy", "fifo"], &[]);
    cluster.add_worker_with("host:1", &["--no-application-ports"]);
    cluster.add_worker("host:1");
    let script = Script::store(&cluster).await;
    let root = script.root().await;
    cluster.until_state(&root.to_string(), "RUNNING");
    let application = root.attempt(1);
    let first = script.child(application, RunnerRole::Actor, None, 1).await;
    cluster.until_state(&first.to_string(), "RUNNING");
    let second = script.child(application, RunnerRole::Actor, None, 1).await;
    let shown = access(&cluster, first);
    assert!(shown["port"].is_null() && shown["coordinator"].is_null(), "{shown}");
    let why = cluster.run(&["explain", &second.to_string()]).stdout;
    assert!(why.contains("--no-application-ports"), "{why}");
    assert_eq!(cluster.state(&second.to_string()), "PENDING");
    cluster.run(&["cancel", &root.to_string()]);
}

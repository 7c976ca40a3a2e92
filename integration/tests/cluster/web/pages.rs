//! What the pages show, by plain HTTP: no script is needed to read them.

use super::server::WebServer;
use crate::kit::{Cluster, until};

/// Every page of the menu.
const PAGES: [&str; 6] = ["/", "/queue?state=all", "/nodes", "/timeline", "/arrays", "/people"];

#[test]
fn pages_tell_of_jobs_nodes_and_people() {
    let cluster = Cluster::start(&["host:2"]);
    let job = cluster.submit(
        &["--name", "train", "--gpus", "1"],
        r#"echo '{"step": 3, "total": 12, "loss": 0.25}' >> $COHABIT_PROGRESS; echo a line of output; sleep 1000"#,
    );
    let array = cluster.submit(&["--name", "sweep", "--array", "1-3", "--gpus", "1"], "sleep 1000");
    cluster.until_state(&job, "RUNNING");
    let mut server = WebServer::start(&cluster, &[]);
    let session = server.session();
    let has = |path: &str, texts: &[&str]| {
        until(&format!("{path} shows {texts:?}"), || {
            let page = server.page(&session, path);
            texts.iter().all(|text| page.contains(text))
        });
    };
    has("/", &["<caption", "node0", "train", "25%"]);
    has("/queue", &["<caption", "train", "sweep", "RUNNING", "25% 3/12 loss 0.25"]);
    has("/queue?name=swe&state=live", &["Jobs 1 to 1 of 1", "sweep"]);
    has("/queue?state=ended", &["No job passes the filter"]);
    has(&format!("/jobs/{job}"), &["is running", "a line of output", "loss", "0.25", "History, "]);
    has(&format!("/jobs/{job}/confirm/cancel"), &["Cancel job", "method=\"post\""]);
    has("/nodes", &["<caption", "node0", "UP", "2 of 2"]);
    has("/timeline?hours=6", &["<caption", "node0", "train", "<rect"]);
    has("/arrays", &["<caption", "sweep", "0 of 3"]);
    has(&format!("/arrays/{array}"), &["<caption", "RUNNING", "PENDING"]);
    has(&format!("/jobs/{array}.1"), &["RUNNING"]);
    has("/people", &["<caption", "100%"]);
    assert_eq!(server.get("/jobs/999", &[("Cookie", &session)]).status, 404);
    assert_eq!(server.get("/jobs/x", &[("Cookie", &session)]).status, 404);
    assert_eq!(server.get("/nothing", &[("Cookie", &session)]).status, 404);
}

#[test]
fn hostile_names_are_shown_as_text() {
    let cluster = Cluster::start(&["host:1"]);
    let hostile = "<script>alert(1)</script>\u{202e}\"'&";
    let job = cluster.submit(&["--name", hostile], "printf '<b>bold</b>\\033[31m\\n'; sleep 1000");
    cluster.submit(&["--name", hostile, "--array", "1-2"], "true");
    cluster.until_state(&job, "RUNNING");
    let mut server = WebServer::start(&cluster, &[]);
    let session = server.session();
    let own = [format!("/jobs/{job}"), format!("/jobs/{job}/confirm/cancel"), "/arrays/2".to_owned()];
    let filtered = "/queue?state=all&name=%3Cscript%3E&user=%22%3E%3Cscript%3E".to_owned();
    for path in PAGES.map(str::to_owned).into_iter().chain(own).chain([filtered]) {
        let page = server.page(&session, &path);
        assert!(!page.contains("<script>alert") && !page.contains("<b>bold"), "{path}: {page}");
        assert!(!page.contains('\u{202e}') && !page.contains('\x1b'), "{path}");
        assert!(!page.contains("\"><script>"), "{path}: {page}");
    }
    let page = server.page(&session, &format!("/jobs/{job}"));
    assert!(page.contains("&#60;script&#62;alert(1)"), "{page}");
    until("the output is there", || {
        server.page(&session, &format!("/jobs/{job}")).contains("&#60;b&#62;bold&#60;/b&#62;")
    });
}

#[test]
fn a_page_that_has_not_changed_is_not_sent_again() {
    let cluster = Cluster::start(&["host:1"]);
    let mut server = WebServer::start(&cluster, &[]);
    let session = server.session();
    until("the node has joined", || server.page(&session, "/nodes").contains("node0"));
    let first = server.get("/nodes", &[("Cookie", &session)]);
    let tag = first.header("etag").unwrap();
    assert_eq!(first.header("cache-control"), Some("no-store"));
    assert!(first.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    let again = server.get("/nodes", &[("Cookie", &session), ("If-None-Match", tag)]);
    assert_eq!((again.status, again.body.as_str(), again.header("etag")), (304, "", Some(tag)));
    let part = server.get("/nodes", &[("Cookie", &session), ("HX-Request", "true")]);
    assert_eq!((part.status, part.header("etag")), (200, Some(tag)));
    assert!(part.body.starts_with("<div id=\"live\"") && !part.body.contains("<html"), "{}", part.body);
    cluster.submit(&[], "sleep 1000");
    until("a change has another tag", || {
        server.get("/nodes", &[("Cookie", &session), ("If-None-Match", tag)]).status == 200
    });
}

#[test]
fn pages_say_that_the_head_is_away_and_when_it_is_back() {
    let mut cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&["--name", "survivor"], "sleep 1000");
    cluster.until_state(&job, "RUNNING");
    let mut server = WebServer::start(&cluster, &[]);
    let session = server.session();
    let path = format!("/jobs/{job}");
    for path in ["/queue", &path] {
        until("the job is shown", || server.page(&session, path).contains("survivor"));
    }
    cluster.kill_head();
    for path in ["/queue", &path] {
        until("the page says so", || {
            let page = server.page(&session, path);
            page.contains("The head does not answer") && page.contains("class=\"stale\"")
        });
    }
    let refused = server.post(&session, &format!("/jobs/{job}/cancel"));
    assert_eq!(refused.status, 503, "{refused:?}");
    cluster.restart_head();
    until("the page is fresh again", || {
        let page = server.page(&session, "/queue");
        page.contains("survivor") && !page.contains("The head does not answer")
    });
}

//! The report page is complete and self-contained.

use super::*;
use crate::simulate::samples::outcomes;

#[test]
fn the_page_loads_nothing_from_elsewhere() {
    let page = page(&outcomes()).unwrap().replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for outside in ["http:", "https:", "<script", "<link", "src=", "url(", "@import", "href="] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn every_table_scrolls_in_a_box_of_its_own() {
    let mut outcomes = outcomes();
    outcomes.runs[0].evaluated.estimates.all.jobs = 2;
    let page = page(&outcomes).unwrap();
    assert_eq!(page.matches("<table").count(), 3);
    assert_eq!(page.matches("<div class=\"wide\"><table").count(), 3);
    assert!(
        page.contains(".wide { overflow-x: auto; }")
            && page.contains("figure { margin: 0; overflow-x: auto; }")
    );
}

#[test]
fn text_of_users_is_escaped() {
    let page = page(&outcomes()).unwrap();
    assert!(page.contains("a-srpt:&lt;b&gt;&amp;theta=1") && page.contains("jobs &lt;1&gt;.csv"));
    assert!(!page.contains("<b>&theta") && !page.contains("<1>"));
    assert!(page.contains("<pre>cohabit simulate --trace &#39;jobs &lt;1&gt;.csv&#39;</pre>"));
}

#[test]
fn there_is_a_chart_of_devices_for_each_policy() {
    let page = page(&outcomes()).unwrap();
    assert_eq!(page.matches("<svg").count(), 5);
    assert_eq!(page.matches("</svg>").count(), 5);
    assert_eq!(page.matches("The first 2 devices, over the whole time").count(), 2);
    assert!(page.contains("node-1") && page.contains("need more GPUs than the cluster has</th><td>3</td>"));
}

#[test]
fn text_of_charts_has_the_colour_of_the_page() {
    let page = page(&outcomes()).unwrap();
    assert!(page.contains("fill=\"currentColor\"") && !page.contains("#010203"));
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn only_the_policy_with_the_shortest_mean_is_highlighted() {
    let page = page(&outcomes()).unwrap();
    let best: Vec<&str> = page.lines().filter(|line| line.contains("class=\"best\"")).collect();
    assert_eq!(best.len(), 1);
    assert!(best[0].contains("a-srpt"), "{best:?}");
}

#[test]
fn the_accuracy_of_estimates_is_shown_only_if_there_are_any() {
    let mut outcomes = outcomes();
    assert!(!page(&outcomes).unwrap().contains("Accuracy of estimates"));
    outcomes.runs[0].evaluated.estimates.all.jobs = 2;
    let page = page(&outcomes).unwrap();
    assert!(page.contains("Accuracy of estimates") && page.contains("<td>all jobs</td><td>2</td>"));
}

#[test]
fn a_run_without_ended_jobs_has_a_page() {
    let mut outcomes = outcomes();
    for run in &mut outcomes.runs {
        run.evaluated.jobs.clear();
        run.evaluated.spans.clear();
        run.evaluated.series = Default::default();
    }
    assert!(page(&outcomes).unwrap().ends_with("</html>\n"));
}

//! What charts of hostile, odd and plain metrics look like.

use cohabit_client::types::{MetricRow, MetricSeries, Time};

use super::*;
use crate::cluster::metric_digest::SeriesDigest;

/// An attempt with these metrics; reports are a second apart.
fn attempt(names: &[&str], first_step: u64, rows: &[Vec<f64>]) -> Arc<AttemptMetrics> {
    let row = |(values, step): (&Vec<f64>, u64)| MetricRow {
        step: first_step + step,
        at: Time::from_micros(step * 1_000_000),
        values: values.iter().map(|value| Some(MetricValue(*value))).collect(),
    };
    let names = names.iter().map(|&name| name.to_owned()).collect();
    let series = MetricSeries { names, rows: rows.iter().zip(0..).map(row).collect(), thinning: 1 };
    read(&series)
}

fn read(series: &MetricSeries) -> Arc<AttemptMetrics> {
    let digest = SeriesDigest::of(series);
    Arc::new(AttemptMetrics::of(digest))
}

fn curves(attempts: &[Arc<AttemptMetrics>]) -> Curves {
    let numbered: Vec<(u32, Arc<AttemptMetrics>)> = (1..).zip(attempts.iter().cloned()).collect();
    Curves::new(JobId::new(12), &numbered, &TimeZone::UTC)
}

/// The one chart of a metric with these values at steps from 1 on.
fn chart(values: &[f64]) -> MetricChart {
    let rows: Vec<Vec<f64>> = values.iter().map(|value| vec![*value]).collect();
    curves(&[attempt(&["loss"], 1, &rows)]).charts.pop().unwrap()
}

#[test]
fn a_curve_goes_from_the_first_step_to_the_last() {
    let chart = chart(&[4.0, 2.0, 0.0]);
    let drawing = chart.drawing.unwrap();
    assert_eq!(drawing.path, "M62.0 12.0h.9L197.0 77.0L332.0 142.0");
    assert_eq!((drawing.x_name, drawing.x_labels), ("step", ["1".to_owned(), "3".to_owned()]));
    assert_eq!(drawing.y_labels.map(|(_, label)| label), ["4.00", "2.00", "0"]);
    assert_eq!(drawing.words, "Curve of loss from step 1 to 3: last 0, least 0, largest 4.00");
    assert_eq!((chart.last.as_str(), chart.reports.as_str()), ("0", "3 reports"));
    assert_eq!(chart.rows.iter().map(|row| row.step).collect::<Vec<_>>(), [3, 2, 1]);
}

#[test]
fn what_is_no_number_is_a_gap_a_mark_and_a_sentence() {
    let nan = f64::NAN;
    let odd = chart(&[1.0, nan, 2.0, f64::INFINITY, nan, f64::NEG_INFINITY]);
    let drawing = odd.drawing.unwrap();
    assert_eq!(drawing.path.matches('M').count(), 2, "{}", drawing.path);
    assert!(!drawing.path.contains("NaN") && !drawing.path.contains("inf"), "{}", drawing.path);
    let texts: Vec<&str> = drawing.marks.iter().map(|(_, text)| *text).collect();
    assert_eq!(texts, ["NaN", "Inf", "NaN", "-Inf"]);
    let [first, second, third] = &odd.alarms[..] else { panic!("{:?}", odd.alarms) };
    assert_eq!(first, "NaN: not a number at step 2, and 1 more");
    assert!(second.starts_with("Infinity") && third.starts_with("-Infinity"), "{second} {third}");
    assert_eq!((odd.last.as_str(), odd.is_number), ("-Infinity", false));
    assert_eq!(odd.range, Some(("1.00".to_owned(), "2.00".to_owned())));

    let nothing_else = chart(&[nan; 4]);
    assert_eq!((nothing_else.drawing, nothing_else.range), (None, None));
    assert_eq!(nothing_else.alarms, ["NaN: not a number at step 1, and 3 more"]);
}

#[test]
fn marks_that_would_touch_are_left_out() {
    let marks = chart(&[[1.0].as_slice(), &[f64::NAN; 200]].concat()).drawing.unwrap().marks;
    assert!(marks.len() <= 6, "{marks:?}");
    let places: Vec<f64> = marks.iter().map(|(x, _)| x.parse().unwrap()).collect();
    assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= MARK_WIDTH - 0.1), "{places:?}");
}

#[test]
fn every_value_lies_in_the_field() {
    let cases: [&[f64]; 6] = [
        &[0.5],
        &[7.0, 7.0],
        &[f64::MIN, f64::MAX, 0.0],
        &[f64::MAX],
        &[f64::MIN_POSITIVE, -0.0],
        &[1e300, 1.0, -1e300],
    ];
    for values in cases {
        let drawing = chart(values).drawing.unwrap();
        let numbers = drawing.path.replace("h.9", "").replace(['M', 'L'], " ");
        let numbers: Vec<f64> = numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 2 * values.len(), "{values:?}: {}", drawing.path);
        for place in numbers.chunks(2) {
            assert!((LEFT..=RIGHT).contains(&place[0]) && (TOP..=BOTTOM).contains(&place[1]), "{values:?}");
        }
        assert!(drawing.y_labels.iter().all(|(_, label)| !label.contains("inf") && !label.contains("NaN")));
    }
}

#[test]
fn attempts_are_pieces_of_one_curve() {
    let first = attempt(&["loss"], 1, &[vec![3.0], vec![2.0]]);
    let second = attempt(&["loss"], 3, &[vec![1.5], vec![1.0]]);
    let curves = curves(&[first, second]);
    let [chart] = &curves.charts[..] else { panic!() };
    let drawing = chart.drawing.as_ref().unwrap();
    assert_eq!(drawing.path.matches('M').count(), 2, "{}", drawing.path);
    assert_eq!(drawing.x_labels, ["1", "4"]);
    assert_eq!((chart.last.as_str(), chart.reports.as_str()), ("1.00", "4 reports"));
    let rows: Vec<(u32, u64)> = chart.rows.iter().map(|row| (row.attempt, row.step)).collect();
    assert_eq!(rows, [(2, 4), (2, 3), (1, 2), (1, 1)]);
}

#[test]
fn reports_without_steps_go_over_time() {
    let rows = [1.0, 2.0, 3.0].map(|value| MetricRow {
        step: 0,
        at: Time::from_micros(value as u64 * 60_000_000),
        values: vec![Some(MetricValue(value))],
    });
    let series = MetricSeries { names: vec!["loss".into()], rows: rows.to_vec(), thinning: 1 };
    let curves = curves(&[read(&series)]);
    let drawing = curves.charts[0].drawing.as_ref().unwrap();
    assert_eq!((drawing.x_name, drawing.x_labels[1].as_str()), ("time", "2 min 0 s"));
    assert_eq!(drawing.path, "M62.0 142.0h.9L197.0 77.0L332.0 12.0");
}

#[test]
fn a_page_is_bounded_however_much_is_reported() {
    let names: Vec<String> = (0..64).map(|number| format!("{}{number:02}", "m".repeat(90))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let rows: Vec<Vec<f64>> = (0..2_000).map(|step| vec![f64::from(step).sin(); 64]).collect();
    let attempts: Vec<_> = (0..8).map(|number| attempt(&names, number * 2_000, &rows)).collect();
    let curves = curves(&attempts);
    assert_eq!(curves.charts.len(), MOST_METRICS);
    for chart in &curves.charts {
        assert!(chart.name.chars().count() <= LONGEST_NAME);
        assert_eq!((chart.rows.len(), chart.rows_of.as_str()), (50, "The last 50 of 16000 values"));
        assert!(chart.drawing.as_ref().unwrap().path.len() < 4_000);
    }
    let others = curves.others.unwrap();
    assert_eq!(others.count, "52 more metrics have");
    assert!(others.names.ends_with(" and 32 more") && others.names.len() < 2_000, "{}", others.names);
    assert_eq!(others.command, "cohabit metrics 12 --plot --metric NAME");
}

#[test]
fn names_are_texts_of_one_line() {
    let curves = curves(&[attempt(&["a\u{1b}[31m\n\u{202e}"], 1, &[vec![1.0]])]);
    assert!(curves.charts[0].name.chars().all(|letter| !letter.is_control() && letter != '\u{202e}'));
}

//! The report of a training: a self-contained HTML page with errors and learning curves.

use cohabit_console::CommandError;
use cohabit_predict::interference::{Epoch, ModelCard, PredictionMetrics};

use super::text;
use crate::page::chart::{Axis, Curve, count_axis, curves};
use crate::page::html::{self, escape_html, figure};
use crate::page::palette;

const HEIGHT: u32 = 320;

/// Renders the page.
pub(super) fn page(card: &ModelCard) -> Result<String, CommandError> {
    let body = [heading(card), figures(card), learning(card)?, command(card)];
    Ok(html::page(&format!("{} on {}", card.model, card.data.file), &body.concat()))
}

fn heading(card: &ModelCard) -> String {
    let data = &card.data;
    let facts = [
        ("model", card.model.clone()),
        ("data", data.file.clone()),
        ("sets", data.sets.to_string()),
        ("configurations", data.configurations.to_string()),
        ("GPUs", data.gpus.join(", ")),
        ("seed", card.seed.to_string()),
    ];
    let spans: String = facts
        .iter()
        .map(|(name, fact)| format!("<span>{name} <b>{}</b></span> ", escape_html(fact)))
        .collect();
    format!("<h1>Model of slowdowns</h1>\n<p class=\"facts\">{spans}</p>\n")
}

/// One section per set of measurements that was predicted.
fn figures(card: &ModelCard) -> String {
    let mut columns = vec![("training data".to_owned(), &card.training)];
    for held in &card.held_out {
        columns.push((format!("without {}, {} observed", held.split, held.observed), &held.figures));
    }
    let section = |(title, figures): &(String, &PredictionMetrics)| {
        let rows: String = text::figure_rows(figures)
            .iter()
            .map(|(name, value)| format!("<tr><th>{name}</th><td>{}</td></tr>\n", escape_html(value)))
            .collect();
        format!(
            "<h3>{}</h3>\n<div class=\"wide\"><table><tbody>\n{rows}</tbody></table></div>\n",
            escape_html(title)
        )
    };
    let sections: String = columns.iter().map(section).collect();
    format!(
        "<section>\n<h2>Errors</h2>\n<p class=\"hint\">Errors are relative to the measured values. \"Without\" sets, configurations or \
         models: errors of further models that were trained without them.</p>\n{sections}</section>\n"
    )
}

fn learning(card: &ModelCard) -> Result<String, CommandError> {
    if card.curve.len() < 2 {
        return Ok(String::new());
    }
    let points = |loss: fn(&Epoch) -> Option<f64>| -> Vec<(f64, f64)> {
        card.curve.iter().filter_map(|epoch| Some((epoch.epoch as f64, loss(epoch)?))).collect()
    };
    let both = [points(|epoch| Some(epoch.loss)), points(|epoch| epoch.held_back_loss)];
    let most =
        both.iter().flatten().map(|(_, loss)| *loss).filter(|loss| loss.is_finite()).fold(0.0, f64::max);
    let curve = |(place, points): (usize, Vec<_>)| Curve { colour: palette::of_series(place), points };
    let drawn: Vec<Curve> = both.into_iter().enumerate().map(curve).collect();
    let svg = curves(&count_axis("epoch", card.curve.len() as f64), &losses(most), &drawn, HEIGHT)?;
    let curve = |(place, name)| format!("<span>{}{name}</span>", palette::legend_marker(place));
    let names: String = ["training", "validation"].into_iter().enumerate().map(curve).collect();
    let legend = format!("<div class=\"legend\">{names}</div>\n");
    Ok(figure("Learning curves", "Mean loss after each epoch.", &format!("{legend}{svg}")))
}

fn losses(most: f64) -> Axis {
    let top = if most > 0.0 { most } else { 1.0 };
    let ticks = (0..=5).map(|tick| top * f64::from(tick) / 5.0).collect();
    Axis { label: "loss", range: 0.0..top, ticks, write: |loss| format!("{loss:.3}") }
}

fn command(card: &ModelCard) -> String {
    format!("<section>\n<h2>Command</h2>\n<pre>{}</pre>\n</section>\n", escape_html(&card.command))
}

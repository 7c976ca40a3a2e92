//! Charts with axes and curves, as SVG for a page. Text and grid have the colour of the page.

use std::fmt::Display;
use std::ops::Range;

use cohabit_console::{CommandError, CommandErrorKind};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;

/// Placeholder for the text colour of the page. It is replaced with `currentColor`, which is legible on light
/// and dark pages.
pub(crate) const FOREGROUND: RGBColor = RGBColor(1, 2, 3);
const FOREGROUND_HEX: &str = "#010203";
pub(crate) const WIDTH: u32 = 920;
pub(crate) const FONT: &str = "sans-serif";
pub(crate) const TEXT_SIZE: u32 = 13;

/// The drawing area.
pub(crate) type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// One axis.
pub(crate) struct Axis {
    /// The quantity.
    pub(crate) label: &'static str,
    pub(crate) range: Range<f64>,
    /// Positions of the tick labels.
    pub(crate) ticks: Vec<f64>,
    /// Formats a tick label.
    pub(crate) write: fn(f64) -> String,
}

/// One curve.
pub(crate) struct Curve {
    pub(crate) colour: RGBColor,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A linear scale.
struct Scale<'a>(&'a Axis);

impl Ranged for Scale<'_> {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (low, high): (i32, i32)) -> i32 {
        let Range { start, end } = self.0.range;
        low + ((value - start) / (end - start) * f64::from(high - low)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.0.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.0.range.clone()
    }
}

/// Draws an SVG of this height.
pub(crate) fn svg(
    height: u32,
    draw: impl FnOnce(&Canvas<'_>) -> Result<(), CommandError>,
) -> Result<String, CommandError> {
    let mut text = String::new();
    {
        let canvas = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        draw(&canvas)?;
        canvas.present().map_err(chart_error)?;
    }
    Ok(text.replace(FOREGROUND_HEX, "currentColor"))
}

/// Draws curves over their axes.
pub(crate) fn curves(x: &Axis, y: &Axis, curves: &[Curve], height: u32) -> Result<String, CommandError> {
    svg(height, |canvas| {
        let mut chart = ChartBuilder::on(canvas)
            .margin(10)
            .margin_right(24)
            .x_label_area_size(42)
            .y_label_area_size(58)
            .build_cartesian_2d(Scale(x), Scale(y))
            .map_err(chart_error)?;
        chart
            .configure_mesh()
            .axis_style(FOREGROUND.mix(0.5))
            .bold_line_style(FOREGROUND.mix(0.12))
            .light_line_style(TRANSPARENT)
            .label_style((FONT, TEXT_SIZE, &FOREGROUND))
            .axis_desc_style((FONT, TEXT_SIZE, &FOREGROUND))
            .x_desc(x.label)
            .y_desc(y.label)
            .x_labels(x.ticks.len())
            .y_labels(y.ticks.len())
            .x_label_formatter(&|value| (x.write)(*value))
            .y_label_formatter(&|value| (y.write)(*value))
            .draw()
            .map_err(chart_error)?;
        for Curve { colour, points } in curves {
            let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
            chart.draw_series(line).map_err(chart_error)?;
        }
        Ok(())
    })
}

pub(crate) fn chart_error(error: impl Display) -> CommandError {
    CommandError::new(CommandErrorKind::Internal, format!("cannot draw a chart: {error}"))
}

/// An axis from 0 to at least `most`, with round tick labels.
pub(crate) fn count_axis(label: &'static str, most: f64) -> Axis {
    let top = most.max(1.0);
    let rough = top / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|it| it * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(rough).max(1.0);
    let ticks = (0..=(top / step).ceil() as u64).map(|number| number as f64 * step).collect();
    Axis { label, range: 0.0..(top / step).ceil() * step, ticks, write: |count| format!("{count:.0}") }
}

//! Panels over time: lines, stacks, bars, bands of states.

use std::collections::BTreeMap;

use serde_json::Value;

use super::answers::{Answers, Series, text};
use super::numbers::{mapped, shown, time};
use super::svg::{Anchor, Area, Drawing, FAINT, Style};

/// Colours of series, in turn.
const COLOURS: &[&str] = &[
    "#4c9a5b", "#d9a81e", "#3d71d9", "#e0752d", "#8a4fbf", "#2a9aa8", "#b5476b", "#6b7f2a",
    "#5c6fb5", "#a8672a", "#4a8f8f", "#9b5f9b",
];
const GRID: &str = "#e6e8ea";
/// Series in the legend; more are counted.
const NAMED: usize = 4;
const SIZE: f64 = 10.0;

struct Line<'a> {
    name: String,
    series: &'a Series,
    colour: &'static str,
    is_limit: bool,
}

/// The scale of a panel.
struct Scale {
    area: Area,
    from: f64,
    until: f64,
    low: f64,
    high: f64,
}

impl Scale {
    fn x(&self, time: f64) -> f64 {
        self.area.x + (time - self.from) / (self.until - self.from) * self.area.width
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        self.area.bottom() - share.clamp(0.0, 1.0) * self.area.height
    }
}

pub(super) fn lines(drawing: &mut Drawing, area: &Area, panel: &Value, answers: &Answers) {
    let defaults = &panel["fieldConfig"]["defaults"];
    let mut colours = COLOURS.iter().cycle();
    let lines: Vec<Line> = answers
        .named(panel)
        .filter(|(_, series)| !series.points.is_empty())
        .map(|(name, series)| {
            let is_limit = name.contains(" limit");
            let colour = if is_limit { FAINT } else { colours.next().unwrap_or(&FAINT) };
            Line { name, series, colour, is_limit }
        })
        .collect();
    let bars = defaults["custom"]["drawStyle"] == "bars";
    let stacked = defaults["custom"]["stacking"]["mode"] == "normal";
    let tops = stacked.then(|| stack(&lines));
    let scale = scale(area, panel, &lines, tops.as_deref(), answers);
    axes(drawing, &scale, text(&defaults["unit"]));
    for (index, line) in lines.iter().enumerate() {
        if let Some(tops) = &tops {
            let below = index.checked_sub(1).map(|below| &tops[below]);
            pile(drawing, &scale, line, (below, &tops[index]), bars);
        } else {
            let points = line.series.points.iter();
            let points: Vec<(f64, f64)> =
                points.map(|(time, value)| (scale.x(*time), scale.y(*value))).collect();
            drawing.path(&points, line.colour, line.is_limit);
        }
    }
    legend(drawing, area, &lines, text(&defaults["unit"]));
}

/// Times in whole milliseconds, which can be looked up.
fn moment(time: f64) -> String {
    format!("{time:.3}")
}

/// The height of the stack after each line, by time.
fn stack(lines: &[Line]) -> Vec<BTreeMap<String, (f64, f64)>> {
    let mut height: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (time, _) in lines.iter().flat_map(|line| &line.series.points) {
        height.insert(moment(*time), (*time, 0.0));
    }
    let mut tops = Vec::new();
    for line in lines {
        for (time, value) in &line.series.points {
            if let Some((_, top)) = height.get_mut(&moment(*time)) {
                *top += value;
            }
        }
        tops.push(height.clone());
    }
    tops
}

type Top = BTreeMap<String, (f64, f64)>;

fn pile(
    drawing: &mut Drawing,
    scale: &Scale,
    line: &Line,
    (below, top): (Option<&Top>, &Top),
    bars: bool,
) {
    let floor =
        |moment: &String| below.and_then(|below| below.get(moment)).map_or(0.0, |(_, y)| *y);
    if bars {
        let width = (scale.area.width / top.len().max(40) as f64 * 0.8).max(2.0);
        for (moment, (time, value)) in top {
            let bottom = floor(moment);
            if *value > bottom {
                let y = scale.y(*value);
                let height = scale.y(bottom) - y;
                drawing
                    .rect(&Area { x: scale.x(*time) - width / 2.0, y, width, height }, line.colour);
            }
        }
        return;
    }
    let mut points: Vec<(f64, f64)> =
        top.values().map(|(time, value)| (scale.x(*time), scale.y(*value))).collect();
    points.extend(
        top.iter().rev().map(|(moment, (time, _))| (scale.x(*time), scale.y(floor(moment)))),
    );
    drawing.filled(&points, line.colour);
}

fn scale(
    area: &Area,
    panel: &Value,
    lines: &[Line],
    tops: Option<&[Top]>,
    answers: &Answers,
) -> Scale {
    let defaults = &panel["fieldConfig"]["defaults"];
    let values = lines.iter().flat_map(|line| &line.series.points).map(|(_, value)| *value);
    let stacks = tops.into_iter().flatten().flat_map(BTreeMap::values).map(|(_, value)| *value);
    let values: Vec<f64> = values.chain(stacks).collect();
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let low = defaults["min"].as_f64().unwrap_or(lowest - (highest - lowest) * 0.1);
    let high = defaults["max"].as_f64().unwrap_or(highest + (highest - low) * 0.08);
    let high = if high - low < 1e-9 { low + 1.0 } else { high };
    let names = 15.0 * (lines.len().min(NAMED).div_ceil(2) as f64);
    Scale {
        area: Area {
            x: area.x + 58.0,
            y: area.y + 4.0,
            width: area.width - 64.0,
            height: area.height - 24.0 - names,
        },
        from: answers.from,
        until: answers.until,
        low,
        high,
    }
}

fn axes(drawing: &mut Drawing, scale: &Scale, unit: &str) {
    for step in 0..=4_u32 {
        let share = f64::from(step) / 4.0;
        let value = scale.low + (scale.high - scale.low) * share;
        let y = scale.y(value);
        drawing.path(&[(scale.area.x, y), (scale.area.right(), y)], GRID, false);
        let style = Style::new(SIZE).faint().anchored(Anchor::End);
        drawing.text((scale.area.x - 5.0, y + 3.0), &shown(value, unit, None), &style);
    }
    times(drawing, scale);
}

fn times(drawing: &mut Drawing, scale: &Scale) {
    for step in 0..=3_u32 {
        let at = scale.from + (scale.until - scale.from) * f64::from(step) / 3.0;
        let anchor = match step {
            0 => Anchor::Start,
            3 => Anchor::End,
            _ => Anchor::Middle,
        };
        let style = Style::new(SIZE).faint().anchored(anchor);
        drawing.text((scale.x(at), scale.area.bottom() + 13.0), &time(at), &style);
    }
}

fn legend(drawing: &mut Drawing, area: &Area, lines: &[Line], unit: &str) {
    let shown_lines = if lines.len() > NAMED { NAMED - 1 } else { NAMED };
    let rows = lines.len().min(NAMED).div_ceil(2);
    let at = |index: usize| {
        let y = area.bottom() - 15.0 * (rows - index / 2) as f64 + 12.0;
        (area.x + (index % 2) as f64 * area.width / 2.0, y)
    };
    for (index, line) in lines.iter().take(shown_lines).enumerate() {
        let (x, y) = at(index);
        drawing.rect(&Area { x, y: y - 4.0, width: 12.0, height: 3.0 }, line.colour);
        let last = line.series.last().map(|value| shown(value, unit, None)).unwrap_or_default();
        let words = format!("{}  {last}", line.name);
        let style = Style::new(SIZE).within(area.width / 2.0 - 24.0);
        drawing.text((x + 17.0, y), &words, &style);
    }
    if lines.len() > NAMED {
        let words = format!("and {} more", lines.len() - shown_lines);
        let (x, y) = at(shown_lines);
        drawing.text((x + 17.0, y), &words, &Style::new(SIZE).faint());
    }
}

/// A band for each series.
pub(super) fn states(drawing: &mut Drawing, area: &Area, panel: &Value, answers: &Answers) {
    let mappings = &panel["fieldConfig"]["defaults"]["mappings"];
    let bands: Vec<(String, &Series)> =
        answers.named(panel).filter(|(_, series)| !series.points.is_empty()).collect();
    let names = area.width * 0.3;
    let inner = Area {
        x: area.x + names,
        y: area.y,
        width: area.width - names,
        height: area.height - 18.0,
    };
    let scale =
        Scale { area: inner, from: answers.from, until: answers.until, low: 0.0, high: 1.0 };
    let height = (inner.height / bands.len() as f64).min(30.0);
    let size = SIZE.min(height * 0.8);
    for (index, (name, series)) in bands.iter().enumerate() {
        let y = inner.y + index as f64 * height;
        let style = Style::new(size).anchored(Anchor::End).within(names - 8.0);
        drawing.text((inner.x - 6.0, y + height * 0.65), name, &style);
        for (from, until, value) in spans(series, answers.until) {
            let (words, colour) = mapped(value, mappings).unwrap_or(("", FAINT));
            let x = scale.x(from.max(answers.from));
            let band = Area { x, y, width: scale.x(until) - x, height: height * 0.88 };
            drawing.rect(&band, colour);
            let style = Style::new(size).coloured("#ffffff").within(band.width - 6.0);
            drawing.text((x + 4.0, y + height * 0.62), words, &style);
        }
    }
    times(drawing, &scale);
}

/// Stretches of one value: from, until, value.
fn spans(series: &Series, end: f64) -> Vec<(f64, f64, f64)> {
    let mut spans: Vec<(f64, f64, f64)> = Vec::new();
    for (time, value) in &series.points {
        match spans.last_mut() {
            Some((_, until, same)) if (*same - value).abs() < 1e-9 => *until = *time,
            last => {
                if let Some((_, until, _)) = last {
                    *until = *time;
                }
                spans.push((*time, end.min(*time + 1.0), *value));
            }
        }
    }
    spans
}

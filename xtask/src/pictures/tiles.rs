//! Panels without an axis: numbers, bars, notes.

use serde_json::Value;

use super::answers::{Answers, text};
use super::numbers::{level, shown};
use super::svg::{Anchor, Area, Drawing, Style, width};

/// A number, on the colour of its level where the panel is coloured.
pub(super) fn stat(drawing: &mut Drawing, area: &Area, panel: &Value, answers: &Answers) {
    let defaults = &panel["fieldConfig"]["defaults"];
    let Some(value) = answers.named(panel).find_map(|(_, series)| series.last()) else { return };
    let colour = level(value, &defaults["thresholds"]);
    let coloured = panel["options"]["colorMode"] == "background";
    if coloured {
        drawing.rect(area, colour);
    }
    let style = Style::new(26.0).bold().anchored(Anchor::Middle);
    let style = style.coloured(if coloured { "#ffffff" } else { colour });
    let words = shown(value, text(&defaults["unit"]), defaults["decimals"].as_u64());
    drawing.text((area.x + area.width / 2.0, area.y + area.height / 2.0 + 9.0), &words, &style);
}

/// A bar for each series.
pub(super) fn bars(drawing: &mut Drawing, area: &Area, panel: &Value, answers: &Answers) {
    let defaults = &panel["fieldConfig"]["defaults"];
    let values: Vec<(String, f64)> = answers
        .named(panel)
        .filter_map(|(name, series)| series.last().map(|value| (name, value)))
        .collect();
    let highest = values.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let height = (area.height / values.len() as f64).min(34.0);
    for (index, (name, value)) in values.iter().enumerate() {
        let y = area.y + index as f64 * height;
        let bar = Area {
            x: area.x,
            y: y + height * 0.5,
            width: (area.width - 70.0) * (value / highest).clamp(0.0, 1.0),
            height: height * 0.4,
        };
        drawing.text((area.x, y + height * 0.4), name, &Style::new(11.0).within(area.width));
        drawing.rect(&bar, level(*value, &defaults["thresholds"]));
        let words = shown(*value, text(&defaults["unit"]), defaults["decimals"].as_u64());
        let style = Style::new(11.0).anchored(Anchor::End);
        drawing.text((area.right(), bar.bottom() - 2.0), &words, &style);
    }
}

/// Words, broken into lines.
pub(super) fn note(drawing: &mut Drawing, area: &Area, words: &str) {
    let words = words.replace("**", "").replace('`', "");
    let size = 12.0;
    let (mut line, mut y) = (String::new(), area.y + size);
    for word in words.split_whitespace() {
        if width(&line, size) + width(word, size) > area.width && !line.is_empty() {
            drawing.text((area.x, y), &line, &Style::new(size));
            y += size * 1.4;
            line.clear();
        }
        line.push_str(word);
        line.push(' ');
    }
    drawing.text((area.x, y), &line, &Style::new(size));
}

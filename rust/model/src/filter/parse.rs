//! From the caller's JSON to a filter, refusing whatever is not understood.

use serde_json::{Map, Value};

use super::{Field, Filter, Range, Scalar, Test, TextField};
use crate::limits::{FILTER_CONDITIONS_MAX, FILTER_DEPTH_MAX, FILTER_TEXT_BYTES_MAX, FILTER_VALUES_MAX};
use crate::{Invalid, InvalidKind, Timestamp};

/// Reads a filter object.
///
/// # Errors
/// An unknown field or operator, a value of the wrong type, or a filter over its limits; the field is named.
pub fn parse(object: &Map<String, Value>) -> Result<Filter, Invalid> {
    let mut conditions = 0;
    parse_object(object, 1, &mut conditions)
}

fn parse_object(object: &Map<String, Value>, depth: usize, conditions: &mut usize) -> Result<Filter, Invalid> {
    if depth > FILTER_DEPTH_MAX {
        return Err(Invalid::over_limit("filters", depth, FILTER_DEPTH_MAX, "levels"));
    }
    let mut parts = Vec::with_capacity(object.len());
    for (name, value) in object {
        *conditions += 1;
        if *conditions > FILTER_CONDITIONS_MAX {
            return Err(Invalid::over_limit("filters", *conditions, FILTER_CONDITIONS_MAX, "conditions"));
        }
        parts.push(match name.as_str() {
            "and" => Filter::All(parse_list(name, value, depth, conditions)?),
            "or" => Filter::Any(parse_list(name, value, depth, conditions)?),
            "not" => Filter::Not(Box::new(parse_object(as_object(name, value)?, depth + 1, conditions)?)),
            _ => parse_condition(name, value)?,
        });
    }
    Ok(Filter::All(parts))
}

fn parse_list(name: &str, value: &Value, depth: usize, conditions: &mut usize) -> Result<Vec<Filter>, Invalid> {
    let items = value.as_array().filter(|items| !items.is_empty());
    let items = items.ok_or_else(|| wrong(name, "needs a list of at least one filter", value))?;
    items.iter().map(|item| parse_object(as_object(name, item)?, depth + 1, conditions)).collect()
}

fn as_object<'a>(name: &str, value: &'a Value) -> Result<&'a Map<String, Value>, Invalid> {
    value
        .as_object()
        .filter(|object| !object.is_empty())
        .ok_or_else(|| wrong(name, "needs a filter with at least one condition", value))
}

fn parse_condition(name: &str, value: &Value) -> Result<Filter, Invalid> {
    let field = Field::named(name).ok_or_else(|| {
        let advice = format!("Use one of {}, and, or, not", Field::names().join(", "));
        Invalid::new(InvalidKind::UnknownField, format!("filters.{name}"), "is not a field", name, advice)
    })?;
    let Some(operators) = value.as_object() else {
        return Ok(Filter::Test(field.clone(), Test::In(vec![scalar(name, &field, value)?])));
    };
    if operators.is_empty() {
        return Err(wrong(name, "has no operator", value));
    }
    let mut range = Range::default();
    let mut parts = Vec::new();
    for (operator, operand) in operators {
        match operator.as_str() {
            "eq" => parts.push(Test::In(vec![scalar(name, &field, operand)?])),
            "in" => parts.push(Test::In(scalars(name, &field, operand)?)),
            "gt" | "gte" => set_bound(name, &mut range.low, (scalar(name, &field, operand)?, operator == "gte"))?,
            "lt" | "lte" => set_bound(name, &mut range.high, (scalar(name, &field, operand)?, operator == "lte"))?,
            "exists" => parts.push(Test::Exists(
                operand.as_bool().ok_or_else(|| wrong(name, "exists needs true or false", operand))?,
            )),
            _ => {
                let advice =
                    "Use eq, in, gt, gte, lt, lte or exists; for all but a value write {\"not\": {field: value}}";
                return Err(Invalid::new(
                    InvalidKind::UnknownField,
                    format!("filters.{name}.{operator}"),
                    "is not an operator",
                    operator,
                    advice,
                ));
            }
        }
    }
    if range != Range::default() {
        if field == Field::Text(TextField::MemoryId) {
            // Ids are random below the millisecond: their order says nothing that created_at does not say better.
            return Err(wrong(name, "takes no range", value));
        }
        parts.push(Test::Range(range));
    }
    Ok(Filter::All(parts.into_iter().map(|test| Filter::Test(field.clone(), test)).collect()))
}

fn set_bound(name: &str, bound: &mut Option<(Scalar, bool)>, value: (Scalar, bool)) -> Result<(), Invalid> {
    match bound.replace(value) {
        None => Ok(()),
        Some(_) => Err(Invalid::new(
            InvalidKind::Filter,
            format!("filters.{name}"),
            "has two bounds on one side",
            name,
            "Give gt or gte, and lt or lte",
        )),
    }
}

fn scalars(name: &str, field: &Field, value: &Value) -> Result<Vec<Scalar>, Invalid> {
    let items = value.as_array().ok_or_else(|| wrong(name, "in needs a list", value))?;
    if items.len() > FILTER_VALUES_MAX {
        return Err(Invalid::over_limit(format!("filters.{name}"), items.len(), FILTER_VALUES_MAX, "values"));
    }
    items.iter().map(|item| scalar(name, field, item)).collect()
}

/// The value in the type that `field` has, so that comparing it can mean something.
fn scalar(name: &str, field: &Field, value: &Value) -> Result<Scalar, Invalid> {
    let given = Scalar::from_json(value).ok_or_else(|| {
        let advice = match value {
            Value::Null => "For memories without a value write {\"exists\": false}",
            Value::Array(_) => "For any of several values write {\"in\": [...]}",
            _ => "See the page on filters",
        };
        Invalid { advice: advice.to_owned(), ..wrong(name, "needs a text, number or truth value", value) }
    })?;
    match (field, given) {
        (_, Scalar::Text(text)) if text.len() > FILTER_TEXT_BYTES_MAX => {
            Err(Invalid::over_limit(format!("filters.{name}"), text.len(), FILTER_TEXT_BYTES_MAX, "bytes"))
        }
        (Field::Time(_), Scalar::Text(text)) => {
            let instant =
                Timestamp::parse(&text).map_err(|fault| Invalid { field: format!("filters.{name}"), ..fault })?;
            Ok(instant.0.into())
        }
        // A slip here would let through what the filter is there to keep out.
        (Field::Text(of), Scalar::Text(text))
            if of.vocabulary().is_some_and(|known| !known.contains(&text.as_str())) =>
        {
            let advice = format!("Use one of {}", of.vocabulary().unwrap_or_default().join(", "));
            Err(Invalid { advice, ..wrong(name, "can never be that", value) })
        }
        (Field::Text(TextField::Key), Scalar::Text(text)) => Ok(Scalar::Text(crate::fold(&text))),
        (Field::Metadata(_), given)
        | (Field::Text(_) | Field::Tags, given @ Scalar::Text(_))
        | (Field::Number(_), given @ Scalar::Number(_)) => Ok(given),
        (Field::Time(_), _) => Err(wrong(name, "needs an instant like 2030-01-16T00:00:00Z", value)),
        (Field::Number(_), _) => Err(wrong(name, "needs a number", value)),
        (Field::Text(_) | Field::Tags, _) => Err(wrong(name, "needs a text", value)),
    }
}

fn wrong(name: &str, problem: &str, value: &Value) -> Invalid {
    Invalid::new(InvalidKind::Filter, format!("filters.{name}"), problem, value, "See the page on filters")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(value: Value) -> Result<Filter, Invalid> {
        let Value::Object(object) = value else { panic!("a filter is an object") };
        parse(&object)
    }

    /// A misspelt field is an error, never a filter that does not run.
    #[test]
    fn unknown_names_are_refused() {
        assert_eq!(parsed(json!({"trust_teir": "trusted"})).unwrap_err().field, "filters.trust_teir");
        assert_eq!(parsed(json!({"type": {"like": "x"}})).unwrap_err().field, "filters.type.like");
        assert_eq!(parsed(json!({"metadata.": 1})).unwrap_err().kind, InvalidKind::UnknownField);
    }

    /// Values of the wrong type are refused for fields whose type we know.
    #[test]
    fn wrong_types_are_refused() {
        for filter in [
            json!({"type": 1}),
            json!({"importance": "high"}),
            json!({"created_at": 5}),
            json!({"created_at": "2030-01-01T00:00:00"}),
            json!({"tags": {"exists": 1}}),
            json!({"or": []}),
            json!({"not": {}}),
            json!({"type": {}}),
            json!({"type": null}),
            json!({"importance": {"gt": 1, "gte": 1}}),
        ] {
            assert!(parsed(filter.clone()).is_err(), "{filter}");
        }
    }

    /// Depth, conditions and values are bounded.
    #[test]
    fn size_is_bounded() {
        let nested = |levels: usize| (1..levels).fold(json!({"type": "note"}), |inner, _| json!({"not": inner}));
        assert!(parsed(nested(FILTER_DEPTH_MAX)).is_ok());
        assert!(parsed(nested(FILTER_DEPTH_MAX + 1)).is_err());
        assert!(parsed(json!({"tags": {"in": vec!["a"; FILTER_VALUES_MAX]}})).is_ok());
        assert!(parsed(json!({"tags": {"in": vec!["a"; FILTER_VALUES_MAX + 1]}})).is_err());
    }

    /// Operators on one field must all hold.
    #[test]
    fn operators_combine_by_and() {
        let filter = parsed(
            json!({"importance": {"gte": 0.5, "lt": 0.9}, "or": [{"type": "fact"}, {"tags": {"in": ["a", "b"]}}]}),
        )
        .unwrap();
        let Filter::All(parts) = filter else { panic!("a filter object is a conjunction") };
        assert_eq!(parts.len(), 2);
    }
}

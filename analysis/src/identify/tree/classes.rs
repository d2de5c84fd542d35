//! Sorting into classes of what is alike.

use mxprobe_api::Error;

/// Sorts the numbers below `count` into classes: each joins the first class whose first member is `alike`. Ends as soon as
/// there are more than `most` classes.
///
/// # Errors
/// Returns the error of `alike` if it fails.
pub(super) fn classes(
    count: usize,
    most: usize,
    mut alike: impl FnMut(usize, usize) -> Result<bool, Error>,
) -> Result<Vec<Vec<usize>>, Error> {
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for next in 0..count {
        let mut own = None;
        for (at, class) in classes.iter().enumerate() {
            if alike(class[0], next)? {
                own = Some(at);
                break;
            }
        }
        match own {
            Some(at) => classes[at].push(next),
            None => classes.push(vec![next]),
        }
        if classes.len() > most {
            break;
        }
    }
    Ok(classes)
}

//! A driver's texts about a pipeline that it compiled.

use std::ffi::CStr;

use ash::{khr, vk};
use mxprobe_api::Error;

use crate::failure::{called, failure};

/// Returns every text that a driver keeps for a pipeline, with its name. The pipeline must have been created with
/// `CAPTURE_INTERNAL_REPRESENTATIONS`.
///
/// # Errors
/// Whatever the driver reports.
pub(super) fn texts_of(
    executables: &khr::pipeline_executable_properties::Device,
    pipeline: vk::Pipeline,
) -> Result<Vec<(String, String)>, Error> {
    let info = vk::PipelineInfoKHR::default().pipeline(pipeline);
    // SAFETY: the feature pipelineExecutableInfo is enabled, and the pipeline is the device's.
    let count = unsafe { executables.get_pipeline_executable_properties(&info) };
    let count = called("vkGetPipelineExecutablePropertiesKHR", count)?.len();
    let mut texts = Vec::new();
    for index in 0..u32::try_from(count).unwrap_or(u32::MAX) {
        let info = vk::PipelineExecutableInfoKHR::default().pipeline(pipeline).executable_index(index);
        let call = "vkGetPipelineExecutableInternalRepresentationsKHR";
        // SAFETY: as above, and the pipeline was created with CAPTURE_INTERNAL_REPRESENTATIONS
        // (VUID-vkGetPipelineExecutableInternalRepresentationsKHR-pipeline-03278). Without data pointers this fetches
        // names and sizes.
        let found = unsafe { executables.get_pipeline_executable_internal_representations(&info) };
        let mut found = called(call, found)?;
        let mut data: Vec<Vec<u8>> = found.iter().map(|text| vec![0; text.data_size]).collect();
        for (text, data) in found.iter_mut().zip(&mut data) {
            text.p_data = data.as_mut_ptr().cast();
        }
        let mut count = u32::try_from(found.len()).unwrap_or(u32::MAX);
        // SAFETY: as above; every data pointer refers to `data_size` bytes that live until after the call.
        let result = unsafe {
            (executables.fp().get_pipeline_executable_internal_representations_khr)(
                executables.device(),
                &info,
                &mut count,
                found.as_mut_ptr(),
            )
        };
        if result != vk::Result::SUCCESS {
            return Err(failure(call, result));
        }
        for (text, data) in found.iter().zip(data).filter(|(text, _)| text.is_text == vk::TRUE) {
            // SAFETY: the driver null-terminated the name within its array, as specified.
            let name = unsafe { CStr::from_ptr(text.name.as_ptr()) }.to_string_lossy().into_owned();
            let data = &data[..text.data_size.min(data.len())];
            let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
            texts.push((name, String::from_utf8_lossy(&data[..end]).into_owned()));
        }
    }
    Ok(texts)
}

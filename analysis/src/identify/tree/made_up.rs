//! A made-up unit on which trees are read.

use mxprobe_models::Model;
use mxprobe_sim::ModelDevice;

/// Returns a device that computes an operation by this tree of `s`, which rounds to f32 and treats the bits below its grid
/// as `below` says, and of `w`, which passes floored sums on.
pub(super) fn device(operation: &str, tree: &str, below: &str) -> ModelDevice {
    let text = format!(
        "schema = \"mxprobe-model/1\"\nname = \"made-up\"\ntitle = \"made up\"\nvendor = \"nobody\"\n\
         fingerprint = \"made-up\"\n[sources]\nhere = \"made up\"\n\
         [adder.s]\noutput = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 24\nbelow = \"{below}\"\n\
         nan = \"0x7fffffff\"\nbasis = \"assumed\"\nsource = \"here\"\n\
         [adder.w]\noutput = \"wide\"\nfraction_bits = 20\nbelow = \"floor\"\nbasis = \"assumed\"\nsource = \"here\"\n\
         [[unit]]\ntree = \"{tree}\"\noperations = [\"{operation}\"]\nbasis = \"assumed\"\nsource = \"here\"\n"
    );
    ModelDevice::new(Model::parse("made-up", &text, None).expect("a model"))
}

//! Scalar functions in another process.

use mxprobe_api::{Elements, Error, Flags, Format, Scalar, ScalarFunction, Scalars, StatusFlags};

use super::{
    super::protocol::{Answer, Frame, Request},
    RemoteDevice, one_part, unexpected,
};

impl Scalars for RemoteDevice {
    fn members(&self) -> &[Scalar] {
        &self.described.scalars
    }

    fn call(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        let message = Request::Call { device: self.link.device.clone(), scalar: scalar.id.clone(), function };
        let (format, calls) = (function.result(scalar.id.format), operands.len() / function.arity());
        self.link.elements(&scalar.id.to_string(), message, vec![operands.bytes()], format, calls)
    }

    fn flags(&self) -> Option<&dyn StatusFlags> {
        self.described.flags.then_some(self)
    }
}

impl StatusFlags for RemoteDevice {
    fn call_with_flags(
        &self,
        scalar: &Scalar,
        function: ScalarFunction,
        operands: &Elements,
    ) -> Result<(Elements, Vec<Flags>), Error> {
        let message = Request::CallWithFlags { device: self.link.device.clone(), scalar: scalar.id.clone(), function };
        let (format, calls) = (function.result(scalar.id.format), operands.len() / function.arity());
        let most_bytes = calls * (format.storage_bytes() + 1);
        let name = scalar.id.to_string();
        let Frame { message, mut parts } = self.link.ask(&name, message, vec![operands.bytes()], most_bytes)?;
        if !matches!(message, Answer::Done { .. }) {
            return Err(unexpected(message));
        }
        let flags = if parts.len() > 1 { parts.split_off(1) } else { Vec::new() };
        let flags = one_part(Format::U8, flags)?;
        let read = |bits: u64| u8::try_from(bits).ok().and_then(Flags::from_bits);
        let wrong = || Error::driver("the device's process returned invalid flags");
        let flags = flags.iter().map(|bits| read(bits).ok_or_else(wrong)).collect::<Result<Vec<_>, _>>()?;
        Ok((one_part(format, parts)?, flags))
    }
}

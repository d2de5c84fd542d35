# Models of matrix units in Julia: `LIBRARY` is target/library/libmxprobe_c.so (.dylib, .dll).
#
#     include("mxprobe.jl")
#     h100 = MxProbe.Model("h100")
#     D = MxProbe.matmul(h100, "f16->f32", rand(Float16, 64, 32), rand(Float16, 32, 48))
module MxProbe

const LIBRARY = get(ENV, "MXPROBE_LIBRARY", "libmxprobe_c")

last_error() = unsafe_string(ccall((:mxprobe_last_error, LIBRARY), Cstring, ()))

mutable struct Model
    pointer::Ptr{Cvoid}
    function Model(name::AbstractString)
        pointer = ccall((:mxprobe_model_load, LIBRARY), Ptr{Cvoid}, (Cstring,), name)
        pointer == C_NULL && throw(ArgumentError(last_error()))
        finalizer(new(pointer)) do model
            ccall((:mxprobe_model_free, LIBRARY), Cvoid, (Ptr{Cvoid},), model.pointer)
        end
    end
end

# D = A·B in Float32. Julia stores matrices by columns and mxprobe by rows: the transposed product, B'·A', needs no
# copy.
function matmul(model::Model, operation::AbstractString, A::Matrix{Float16}, B::Matrix{Float16})
    (m, k), n = size(A), size(B, 2)
    k == size(B, 1) || throw(DimensionMismatch("A is $m×$k, B $(size(B, 1))×$n"))
    D = Matrix{Float32}(undef, m, n)
    failed = GC.@preserve model ccall((:mxprobe_matmul, LIBRARY), Cint,
        (Ptr{Cvoid}, Cstring, Csize_t, Csize_t, Csize_t, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid},
            Ptr{Cvoid}, Csize_t),
        model.pointer, operation, n, m, k, B, A, C_NULL, C_NULL, C_NULL, D, 0)
    failed == 0 || throw(ArgumentError(last_error()))
    D
end

end

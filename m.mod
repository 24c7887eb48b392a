!mod$ v1 sum:108db533b83c3e88
module m
type::spline
real(8),allocatable::c(:)
end type
interface spline
procedure::make
end interface
contains
function make(x) result(me)
real(8),intent(in)::x(:)
type(spline)::me
end
end

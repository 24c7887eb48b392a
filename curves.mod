!mod$ v1 sum:fcd5621350459a74
module curves
type::curve
integer(4)::n=0_4
real(8)::scale=1._8
real(8),allocatable::c(:)
real(8),allocatable::m(:,:)
integer(4),allocatable::k(:)
end type
type::pair
real(8)::w
type(curve)::a
type(curve)::b
end type
interface curve
procedure::make
end interface
contains
function make(x) result(me)
real(8),intent(in)::x(:)
type(curve)::me
end
function total(of) result(t)
type(curve),intent(in)::of
real(8)::t
end
function held(x,n)
integer(4),intent(in)::n
real(8),intent(in)::x(1_8:int(n,kind=8))
real(8)::held
end
end

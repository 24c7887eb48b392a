!mod$ v1 sum:16c56170585569e2
module m
contains
recursive function adapt(g,a,b,n) result(r)
interface
function g(x)
real(8),intent(in)::x
real(8)::g
end
end interface
real(8),intent(in)::a
real(8),intent(in)::b
integer(4),intent(in)::n
real(8)::r
end
end

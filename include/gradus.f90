! Derivatives by call, for programs compiled with `gradus fc`. Before the first program unit of a file:
!
!     include 'gradus.f90'
!
! and where a derivative is asked for:
!
!     use gradus
!     external :: gradus_vjp
!     call gradus_vjp(f, gradus_const, n, gradus_dup, x, x_adj)       adds the gradient of f(n, x) into x_adj
!
!     real(8), external :: gradus_jvp
!     slope = gradus_jvp(f, gradus_const, n, gradus_dup, x, x_tan)    the tangent of the result for that of x
!
! After the function, or subroutine, come its arguments in order, each with a word about it before it:
!
!     gradus_const, x              x is inactive
!     gradus_dup, x, x_shadow      x has a shadow of the same type and shape: memory for its tangent or adjoint
!     gradus_dupnoneed, x, x_shadow   the same, and nobody reads x afterwards
!
! An argument without a word is gradus_dup. Adjoints are added to, never overwritten. The adjoint of a function's result
! is one; a subroutine's results have their adjoints in the shadows of its arguments. Arguments go by address, as to any
! procedure without an interface; where f takes arrays by their shape (`x(:)`), or allocatable ones, give gradus_vjp an
! interface with such arguments in place of `external`. Valid in free and fixed form.
      module gradus
        use iso_c_binding, only: c_int
        implicit none
        integer(c_int), bind(c) :: gradus_const, gradus_dup
        integer(c_int), bind(c) :: gradus_dupnoneed, gradus_strong_zero
      end module gradus

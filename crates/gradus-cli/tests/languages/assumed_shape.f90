! Arrays of assumed shape: they come by descriptors, and loops ask these how long and how far apart.
include 'gradus.f90'
module shapes
  implicit none
contains
  real(8) function squares(x)
    real(8), intent(in) :: x(:)
    integer :: i
    squares = 0
    do i = 1, size(x)
      squares = squares + x(i)**2
    end do
  end function

  real(8) function waves(x)
    real(8), intent(in) :: x(0:)
    integer :: i
    waves = 0
    do i = lbound(x, 1), ubound(x, 1) - 1
      waves = waves + sin(x(i)) * x(i + 1)
    end do
  end function

  real(8) function counted(x)
    real(8), intent(in) :: x(:)
    real(8), allocatable :: y(:)
    real(8) :: s
    integer :: i, n
    n = size(x, 1)
    allocate(y(n))
    s = sum(x)
    do i = n, 1, -1
      y(i) = x(i) * s
    end do
    counted = 0
    i = 1
    do while (i <= n)
      counted = counted + y(i)**3 / (1 + s * s)
      i = i + 1
    end do
  end function

  real(8) function dense(x)
    real(8), intent(in), contiguous :: x(:)
    integer :: i
    dense = 1
    do i = 1, size(x)
      dense = dense + exp(-x(i)) * dense * 0.1d0
    end do
  end function

  real(8) function least(x)
    real(8), intent(in) :: x(:)
    integer :: i
    least = x(1)
    do i = 2, size(x)
      if (x(i) < least) least = x(i)
    end do
    least = least**2
  end function

  real(8) function halves(x)
    real(8), intent(in) :: x(:)
    halves = squares(x(1::2)) * waves(x(2::2)) + dense(x(::3))
  end function

  real(8) function table(x)
    real(8), intent(in) :: x(:, :)
    integer :: i, j
    table = 0
    do j = 1, size(x, 2)
      do i = 1, size(x, 1)
        table = table + x(i, j)**2 * j + x(i, 1) * x(1, j)
      end do
      table = table + squares(x(:, j)) * sum(x(1, :))
    end do
  end function

  ! x is read, y written, z both.
  subroutine flow(x, y, z)
    real(8), intent(in) :: x(:)
    real(8), intent(out) :: y(:)
    real(8), intent(inout) :: z(:)
    integer :: i
    do i = 2, size(x) - 1
      y(i) = z(i) + 0.1d0 * (x(i - 1) - 2 * x(i) + x(i + 1))
    end do
    y(1) = x(1) * z(1)
    y(size(y)) = x(size(x))
    z = y * z
    z(2:) = z(2:) + z(:size(z) - 1)
  end subroutine

  subroutine product_of(a, x, y)
    real(8), intent(in) :: a(:, :), x(:)
    real(8), intent(inout) :: y(:)
    integer :: i, j
    do i = 1, size(a, 1)
      y(i) = y(i) * 0.5d0
      do j = 1, size(a, 2)
        y(i) = y(i) + a(i, j) * x(j)
      end do
    end do
  end subroutine
end module

program main
  use shapes
  use gradus
  implicit none
  interface
    subroutine vjp(f, x, dx) bind(c, name="__gradus_vjp_of_line")
      external :: f
      real(8) :: x(:), dx(:)
    end subroutine
    real(8) function jvp(f, x, dx) bind(c, name="__gradus_jvp_of_line")
      external :: f
      real(8) :: x(:), dx(:)
    end function
    subroutine vjp2(f, x, dx) bind(c, name="__gradus_vjp_of_table")
      external :: f
      real(8) :: x(:, :), dx(:, :)
    end subroutine
    real(8) function jvp2(f, x, dx) bind(c, name="__gradus_jvp_of_table")
      external :: f
      real(8) :: x(:, :), dx(:, :)
    end function
    subroutine vjp3(f, x, dx, y, dy, z, dz) bind(c, name="__gradus_vjp_of_flow")
      external :: f
      real(8) :: x(:), dx(:), y(:), dy(:), z(:), dz(:)
    end subroutine
    subroutine jvp3(f, x, dx, y, dy, z, dz) bind(c, name="__gradus_jvp_of_flow")
      external :: f
      real(8) :: x(:), dx(:), y(:), dy(:), z(:), dz(:)
    end subroutine
    subroutine vjp4(f, a, da, x, dx, y, dy) bind(c, name="__gradus_vjp_of_product")
      external :: f
      real(8) :: a(:, :), da(:, :), x(:), dx(:), y(:), dy(:)
    end subroutine
    subroutine jvp4(f, a, da, x, dx, y, dy) bind(c, name="__gradus_jvp_of_product")
      external :: f
      real(8) :: a(:, :), da(:, :), x(:), dx(:), y(:), dy(:)
    end subroutine
    real(8) function line(x)
      real(8), intent(in) :: x(:)
    end function
  end interface
  integer, parameter :: n = 12
  real(8) :: x(n), wide(3 * n), dwide(3 * n), sheet(2 * n, n), dsheet(2 * n, n)
  integer :: i
  x = [(0.3d0 + 0.1d0 * sin(1.7d0 * i), i = 1, n)]
  wide = [(0.2d0 + 0.1d0 * cos(1.1d0 * i), i = 1, 3 * n)]
  sheet = reshape([(0.1d0 * sin(0.9d0 * i), i = 1, 2 * n * n)], [2 * n, n])

  call of_line(squares, x, 'squares')
  call of_line(waves, x, 'waves')
  call of_line(counted, x, 'counted')
  call of_line(least, x, 'least')
  call of_line(halves, x, 'halves')
  ! Every third number, backwards; a row.
  call of_line(squares, wide(::3), 'squares of a section')
  call of_line(counted, wide(3 * n::-3), 'counted backwards')
  call of_line(waves, sheet(5, :), 'waves of a row')
  call of_line(halves, sheet(2::2, 3), 'halves of a section')
  call of_table(sheet(:n, :))
  call of_table(sheet(::4, n::-2))
  call of_flow(x, wide(2::3), sheet(7, :))
  call of_product(sheet(::2, :), wide(:n), wide(n + 1:3 * n:2))
  print '(a)', 'right'
contains
  subroutine expect(a, b, what)
    real(8), intent(in) :: a, b
    character(*), intent(in) :: what
    if (abs(a - b) > 1d-6 * max(abs(b), 1d-3)) then
      print *, what, a, b
      error stop 'wrong'
    end if
  end subroutine

  subroutine of_line(f, at, what)
    procedure(line) :: f
    real(8), intent(in) :: at(:)
    character(*), intent(in) :: what
    real(8), parameter :: h = 1d-6
    real(8) :: p(2 * size(at)), dp(2 * size(at)), g(2 * size(at)), up, down
    integer :: k
    p = -7
    p(::2) = at
    g = 0
    select case (what(:5))
    case ('squar'); call vjp(squares, p(::2), g(::2))
    case ('waves'); call vjp(waves, p(::2), g(::2))
    case ('count'); call vjp(counted, p(::2), g(::2))
    case ('least'); call vjp(least, p(::2), g(::2))
    case ('halve'); call vjp(halves, p(::2), g(::2))
    end select
    if (any(p(2::2) /= -7) .or. any(g(2::2) /= 0)) error stop 'written beside'
    do k = 1, 2 * size(at), 2
      p(k) = at(k / 2 + 1) + h
      up = f(p(::2))
      p(k) = at(k / 2 + 1) - h
      down = f(p(::2))
      p(k) = at(k / 2 + 1)
      call expect(g(k), (up - down) / (2 * h), what)
      dp = 0
      dp(k) = 1
      select case (what(:5))
      case ('squar'); up = jvp(squares, p(::2), dp(::2))
      case ('waves'); up = jvp(waves, p(::2), dp(::2))
      case ('count'); up = jvp(counted, p(::2), dp(::2))
      case ('least'); up = jvp(least, p(::2), dp(::2))
      case ('halve'); up = jvp(halves, p(::2), dp(::2))
      end select
      call expect(g(k), up, what // ' forwards')
    end do
  end subroutine

  ! Rows of larger tables; a shadow lies as its array does.
  subroutine of_table(at)
    real(8), intent(in) :: at(:, :)
    real(8), parameter :: h = 1d-6
    real(8) :: p(2 * size(at, 1), size(at, 2)), dp(2 * size(at, 1), size(at, 2)), g(2 * size(at, 1), size(at, 2))
    real(8) :: up, down
    integer :: k, l
    p = -7
    p(2::2, :) = at
    g = 0
    call vjp2(table, p(2::2, :), g(2::2, :))
    if (any(g(1::2, :) /= 0)) error stop 'written beside'
    do l = 1, size(at, 2)
      do k = 1, size(at, 1)
        p(2 * k, l) = at(k, l) + h
        up = table(p(2::2, :))
        p(2 * k, l) = at(k, l) - h
        down = table(p(2::2, :))
        p(2 * k, l) = at(k, l)
        call expect(g(2 * k, l), (up - down) / (2 * h), 'table')
        dp = 0
        dp(2 * k, l) = 1
        call expect(g(2 * k, l), jvp2(table, p(2::2, :), dp(2::2, :)), 'table forwards')
      end do
    end do
  end subroutine

  ! w*(y, z) along a direction: reverse against forward against differences.
  subroutine of_flow(x, y, z)
    real(8), intent(in) :: x(:), y(:), z(:)
    real(8), parameter :: h = 1d-6
    real(8) :: p(2 * size(x)), q(size(x)), r(3 * size(x)), dp(2 * size(x)), dq(size(x)), dr(3 * size(x))
    real(8) :: a(size(x)), c(size(x)), wq(size(x)), wr(size(x)), up, down, back
    integer :: i
    a = [(0.5d0 + 0.01d0 * i, i = 1, size(x))]
    c = [(cos(1d0 * i), i = 1, size(x))]
    wq = [(1 + 0.1d0 * i, i = 1, size(x))]
    wr = [(sin(2d0 * i), i = 1, size(x))]
    dp = 0; dq = wq; dr = 0
    dr(::3) = wr
    p(::2) = x; q = y; r(::3) = z
    call vjp3(flow, p(::2), dp(::2), q, dq, r(::3), dr(::3))
    back = sum(dp(::2) * a) + sum(dr(::3) * c)
    if (any(dq /= 0)) error stop 'adjoint of what is overwritten'
    dp = 0; dq = 3; dr = 0
    dp(::2) = a; dr(::3) = c
    p(::2) = x; q = y; r(::3) = z
    call jvp3(flow, p(::2), dp(::2), q, dq, r(::3), dr(::3))
    call expect(back, sum(dq * wq) + sum(dr(::3) * wr), 'flow forwards')
    p(::2) = x + h * a; r(::3) = z + h * c
    call flow(p(::2), q, r(::3))
    up = sum(q * wq) + sum(r(::3) * wr)
    p(::2) = x - h * a; r(::3) = z - h * c
    call flow(p(::2), q, r(::3))
    down = sum(q * wq) + sum(r(::3) * wr)
    call expect(back, (up - down) / (2 * h), 'flow')
  end subroutine

  subroutine of_product(a, x, y)
    real(8), intent(in) :: a(:, :), x(:), y(:)
    real(8) :: da(size(a, 1), size(a, 2)), dx(size(x)), dy(size(y)), w(size(y)), q(size(y)), v(size(y))
    real(8) :: b(size(a, 1), size(a, 2)), u(size(x))
    integer :: i
    w = [(1 + 0.1d0 * i, i = 1, size(y))]
    b = a; u = x
    da = 0; dx = 0; dy = w; q = y
    call vjp4(product_of, b, da, u, dx, q, dy)
    do i = 1, size(a, 1)
      if (any(abs(da(i, :) - w(i) * x) > 1d-12)) error stop 'da'
    end do
    if (any(abs(dx - matmul(w, a)) > 1d-12)) error stop 'dx'
    if (any(abs(dy - 0.5d0 * w) > 1d-12)) error stop 'dy'
    da = 1; dx = x; q = y; v = y
    call jvp4(product_of, b, da, u, dx, q, v)
    do i = 1, size(a, 1)
      call expect(v(i), 0.5d0 * y(i) + sum(x) + dot_product(a(i, :), x), 'product forwards')
    end do
  end subroutine
end program

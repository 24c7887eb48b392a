*     Solves a symmetric system by Cholesky's method in blocks, in the manner of Fortran 77: scalars by
*     reference, options as characters, a block size by NINT, errors and progress by WRITE.
      SUBROUTINE WARN( NAME, INFO )
      CHARACTER*(*) NAME
      INTEGER INFO
      WRITE( *, '( A, I4 )' ) NAME( 1:LEN_TRIM( NAME ) ), INFO
      STOP
      END

      LOGICAL FUNCTION SAME( A, B )
      CHARACTER A, B
      SAME = ICHAR( A ).EQ.ICHAR( B )
      END

      SUBROUTINE UPDATE( N, K, A, LDA, B, LDB, C, LDC )
      INTEGER N, K, LDA, LDB, LDC, I, J, L
      DOUBLE PRECISION A( LDA, * ), B( LDB, * ), C( LDC, * )
      DO 30 J = 1, N
         DO 20 L = 1, K
            DO 10 I = 1, N
               C( I, J ) = C( I, J ) - A( I, L )*B( J, L )
   10       CONTINUE
   20    CONTINUE
   30 CONTINUE
      END

      SUBROUTINE FACTOR( UPLO, N, A, LDA, INFO )
      CHARACTER UPLO
      INTEGER N, LDA, INFO, I, J, K, NB, JB
      DOUBLE PRECISION A( LDA, * )
      LOGICAL SAME
      EXTERNAL SAME, WARN
      INFO = 0
      IF( .NOT.SAME( UPLO, 'L' ) ) INFO = -1
      IF( N.LT.0 ) INFO = -2
      IF( INFO.NE.0 ) THEN
         CALL WARN( 'FACTOR', -INFO )
         RETURN
      END IF
      NB = MAX( 2, NINT( LOG( REAL( N ) ) / LOG( 2.0 ) ) )
      DO 60 K = 1, N, NB
         JB = MIN( NB, N-K+1 )
         DO 50 J = K, K+JB-1
            IF( A( J, J ).LE.0 ) GO TO 70
            A( J, J ) = SQRT( A( J, J ) )
            DO 30 I = J+1, N
               A( I, J ) = A( I, J ) / A( J, J )
   30       CONTINUE
            DO 40 I = J+1, K+JB-1
               CALL UPDATE1( N-I+1, A( I, J ), A( I, J ), A( I, I ) )
   40       CONTINUE
   50    CONTINUE
         IF( K+JB.LE.N ) CALL UPDATE( N-K-JB+1, JB, A( K+JB, K ), LDA,
     $      A( K+JB, K ), LDA, A( K+JB, K+JB ), LDA )
   60 CONTINUE
      RETURN
   70 INFO = J
      END

      SUBROUTINE UPDATE1( N, X, S, Y )
      INTEGER N, I
      DOUBLE PRECISION X( * ), S, Y( * )
      DO 10 I = 1, N
         Y( I ) = Y( I ) - X( I )*S
   10 CONTINUE
      END

*     w . x, where A x = b; of A the lower triangle is read.
      DOUBLE PRECISION FUNCTION SOLVE( N, A, B, W )
      INTEGER N, I, J, INFO
      DOUBLE PRECISION A( N, N ), B( N ), W( N ), F( N, N ), X( N ), S
      DO 20 J = 1, N
         X( J ) = B( J )
         DO 10 I = 1, N
            F( I, J ) = A( I, J )
   10    CONTINUE
   20 CONTINUE
      CALL FACTOR( 'L', N, F, N, INFO )
      IF( INFO.NE.0 ) CALL WARN( 'SOLVE', INFO )
      DO 40 J = 1, N
         X( J ) = X( J ) / F( J, J )
         DO 30 I = J+1, N
            X( I ) = X( I ) - F( I, J )*X( J )
   30    CONTINUE
   40 CONTINUE
      IF( N.EQ.5 ) WRITE( *, * ) X( 1 )
      S = 0
      DO 60 J = N, 1, -1
         DO 50 I = J+1, N
            X( J ) = X( J ) - F( I, J )*X( I )
   50    CONTINUE
         X( J ) = X( J ) / F( J, J )
         S = S + W( J )*X( J )
   60 CONTINUE
      SOLVE = S
      END

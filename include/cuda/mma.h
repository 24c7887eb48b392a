/* Tensor cores have no counterpart here. */
#error "mma.h: tensor cores have no counterpart on a processor; compile the program's path without them"

# Exchanges two names without end, so that each is always there: what a program in a sandbox could do to whoever looks from outside.
my ($one, $other) = @ARGV;
my ($here, $exchange, $renameat2) = (-100, 2, 316);
$| = 1;
print "swapping\n";
for (;;) {
    syscall($renameat2, $here, $one, $here, $other, $exchange) == 0 or die "cannot exchange: $!";
}

/**
 * What a hostile program in a sandbox does while its files are asked for from outside: `door`, a folder, and `link`, a link that leads
 * out, change places without end. What was taken away is put back, by the folder itself and not by its name. Half of the time they change
 * as fast as can be, and half of the time each stays for as long as a verb takes between two steps: whoever asks needs processors, too.
 */
export const racer = `
  my ($base) = @ARGV;
  chdir "$base/door" or die;
  $| = 1;
  print "racing\\n";
  for (my $n = 0; ; $n++) {
    syscall(316, -100, "$base/door", -100, "$base/link", 2);
    select(undef, undef, undef, 0.00002) if $n & 32;
    next if $n % 25;
    open(my $f, ">", "file"); print $f "inside"; close $f;
    mkdir "sub"; open($f, ">", "sub/inner"); close $f;
  }`

/** What makes the place it is done in. */
export function preparing(base: string, outside: string): string {
  return `mkdir -p ${base}/door/sub && echo inside > ${base}/door/file && ln -s ${outside} ${base}/link`
}

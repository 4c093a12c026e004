#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
# Speaking to UNIX sockets, for the tests. Inside a guest there is perl without
# its modules: only what is for the machine's side may load some.
#
#   talk.pl say SOCKET SECONDS [PAUSE] <data
#                                        send, after a pause, and print what comes back
#                                        in SECONDS, or a second more
#   talk.pl deaf SOCKET SECONDS          connect, read nothing
#   talk.pl qmp SOCKET COMMAND...        speak QMP; prints the answers
#   talk.pl watch SOCKET SECONDS         ask groupd often; a line for each report
#                                        seen: MS SEQ STATE REPORTS
#   talk.pl flat [GUEST] <JSON           the first guest's report as "KEY VALUE", or
#                                        all that is known of the one of that name
#   talk.pl xs put PATH <DATA            in a Xen guest: write a node
#   talk.pl xs fill PATH COUNT           make so many nodes below, as far as it goes;
#                                        100 in a folder, as a node has room for some 500
#   talk.pl xs flood PATH SECONDS        write a node again and again
#                                        each prints "N written" and the error, if any
use strict;
use warnings;

sub dial {
	my ($path) = @_;

	socket(my $s, 1, 1, 0) or die "talk: socket: $!\n";
	connect($s, pack('S Z108', 1, $path)) or die "talk: $path: $!\n";
	return $s;
}

sub bits { my $b = ''; vec($b, fileno($_[0]), 1) = 1; return $b; }

sub say_it {
	my ($path, $seconds, $pause) = @_;
	my $s = dial($path);
	# time is in whole seconds: one more, so that it is never less
	my $end = time + $seconds + 1;
	my $data = do { local $/; <STDIN> } // '';

	$| = 1;
	$SIG{PIPE} = 'IGNORE';
	nonblock($s);
	select(undef, undef, undef, $pause // 0);
	while (time < $end) {
		my ($r, $w) = (bits($s), length $data ? bits($s) : undef);

		next if select($r, $w, undef, 0.2) <= 0;
		if (defined $w && vec($w, fileno($s), 1)) {
			my $n = syswrite($s, $data, length $data);

			substr($data, 0, $n) = '' if defined $n;
		}
		if (vec($r, fileno($s), 1)) {
			my $n = sysread($s, my $in, 65536);

			last if defined $n && $n == 0;
			print $in if $n;
		}
	}
	print "talk: ", length $data, " bytes were not taken\n" if length $data;
}

sub nonblock {
	# F_GETFL, F_SETFL, O_NONBLOCK on Linux
	my $flags = fcntl($_[0], 3, 0);

	fcntl($_[0], 4, $flags | 04000) or die "talk: fcntl: $!\n";
}

sub deaf {
	my ($path, $seconds) = @_;
	my $s = dial($path);

	select(undef, undef, undef, $seconds);
}

sub qmp {
	my ($path, @commands) = @_;
	my $s = dial($path);

	# bounds a QEMU that does not answer
	alarm 20;
	readline $s;
	for my $c ('{"execute":"qmp_capabilities"}', @commands) {
		syswrite $s, "$c\n";
		while (defined(my $line = readline $s)) {
			next if $line =~ /^\{"timestamp"/ || $line =~ /"event":/;
			print $line if $c !~ /capabilities/;
			last;
		}
	}
}

sub watch {
	my ($path, $seconds) = @_;
	require Time::HiRes;
	my $s = dial($path);
	my $start = Time::HiRes::time();
	my $last = '';

	$| = 1;
	alarm $seconds + 20;
	while ((my $t = Time::HiRes::time() - $start) < $seconds) {
		syswrite $s, "{\"v\":1,\"get\":\"guests\"}\n";
		my $line = readline $s;
		die "talk: groupd is gone\n" if !defined $line;
		my ($state) = $line =~ /"state":"(\w+)"/;
		my ($reports) = $line =~ /"reports":(\d+)/;
		my ($seq) = $line =~ /"seq":(\d+)/;
		$seq //= '-';
		printf "%d %s %s %s\n", $t * 1000, $seq, $state, $reports
			if $reports ne $last;
		$last = $reports;
		select(undef, undef, undef, 0.05);
	}
}

# One xenstore request, by the wire protocol (xen/io/xs_wire.h); returns the error
# that xenstored answers with, or nothing.
sub xs_write {
	my ($bus, $path, $value) = @_;
	my $body = "$path\0$value";

	# type XS_WRITE, request, transaction, length
	syswrite($bus, pack('L4', 11, 0, 0, length $body) . $body) or return "write: $!";
	for (;;) {
		sysread($bus, my $head, 16) or return "read: $!";
		my ($type, undef, undef, $len) = unpack('L4', $head);
		my $answer = '';

		while (length $answer < $len) {
			sysread($bus, $answer, $len - length $answer, length $answer) or return "read: $!";
		}
		# XS_ERROR
		return $type == 16 ? unpack('Z*', $answer) : undef;
	}
}

sub xs {
	my ($how, $path, $n) = @_;
	my ($done, $error) = (0);
	my $data = $how eq 'put' ? do { local $/; <STDIN> } // '' : '';

	open(my $bus, '+<', '/dev/xen/xenbus') or die "talk: /dev/xen/xenbus: $!\n";
	binmode $bus;
	my $end = time + ($n // 0) + 1;
	for (;;) {
		last if $how eq 'put' && $done || $how eq 'fill' && $done >= $n || $how eq 'flood' && time >= $end;
		$error = xs_write($bus, $how eq 'fill' ? sprintf('%s/%d/%d', $path, $done / 100, $done) : $path, $how eq 'put' ? $data : "garbage $done");
		last if defined $error;
		$done++;
	}
	print "$done written", defined $error ? ": $error" : '', "\n";
}

sub flat {
	require JSON::PP;
	my $j = JSON::PP->new->decode(do { local $/; <STDIN> });
	my $walk;

	$walk = sub {
		my ($name, $v) = @_;

		if (ref $v eq 'HASH') {
			$walk->($name eq '' ? $_ : "$name.$_", $v->{$_}) for sort keys %$v;
		} else {
			printf "%s %s\n", $name, defined $v ? $v : 'null';
		}
	};
	if (@_) {
		my ($guest) = grep { $_->{name} eq $_[0] } @{$j->{guests}};
		$walk->('', $guest // {});
		return;
	}
	$walk->('', exists $j->{guests} ? $j->{guests}[0]{report} : $j);
}

my $what = shift // '';
my %do = (say => \&say_it, deaf => \&deaf, qmp => \&qmp, watch => \&watch, flat => \&flat,
	xs => \&xs);
die "usage: see the head of talk.pl\n" if !$do{$what};
$do{$what}->(@ARGV);

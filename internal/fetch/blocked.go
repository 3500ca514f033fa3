package fetch

import (
	"net/netip"
	"slices"
)

// notPublic lists what is blocked of IPv4, and of IPv6 within 2000::/3; the rest of IPv6 is blocked as a whole.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // this network, unspecified
	netip.MustParsePrefix("10.0.0.0/8"),       // private
	netip.MustParsePrefix("100.64.0.0/10"),    // carrier-grade NAT; a cloud's metadata at 100.100.100.200
	netip.MustParsePrefix("127.0.0.0/8"),      // loopback
	netip.MustParsePrefix("168.63.129.16/32"), // a cloud's host agent, on a public address
	netip.MustParsePrefix("169.254.0.0/16"),   // link-local; metadata at 169.254.169.254
	netip.MustParsePrefix("172.16.0.0/12"),    // private
	netip.MustParsePrefix("192.0.0.0/24"),     // protocol assignments; a cloud's metadata at 192.0.0.192
	netip.MustParsePrefix("192.0.2.0/24"),     // documentation
	netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays
	netip.MustParsePrefix("192.168.0.0/16"),   // private
	netip.MustParsePrefix("198.18.0.0/15"),    // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"),  // documentation
	netip.MustParsePrefix("203.0.113.0/24"),   // documentation
	netip.MustParsePrefix("224.0.0.0/4"),      // multicast
	netip.MustParsePrefix("240.0.0.0/4"),      // reserved, broadcast

	netip.MustParsePrefix("2001::/23"),     // protocol assignments: Teredo, benchmarks, ORCHID
	netip.MustParsePrefix("2001:db8::/32"), // documentation
	netip.MustParsePrefix("3fff::/20"),     // documentation
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour     = netip.MustParsePrefix("2002::/16")
)

// Blocked reports whether addr is anything but a public unicast address: private, loopback, link-local, unique-local,
// multicast, unspecified, documentation, benchmark, reserved or a cloud's metadata address, or an IPv6 address that
// embeds such an IPv4 address (IPv4-mapped, NAT64, 6to4). The zero Addr is blocked.
func Blocked(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		b := addr.As16()
		switch {
		case nat64.Contains(addr):
			return Blocked(netip.AddrFrom4([4]byte(b[12:])))
		case sixToFour.Contains(addr):
			return Blocked(netip.AddrFrom4([4]byte(b[2:6])))
		case !globalUnicast.Contains(addr):
			return true
		}
	}
	return !addr.IsValid() || slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(addr) })
}

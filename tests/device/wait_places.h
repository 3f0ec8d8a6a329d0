#pragma once

#include <string>
#include <vector>

namespace tutti::test_device {

// The places in a program's code that make a stream or a thread wait for an event, so that a mutation test
// can leave out each of them in turn. A place is what waits and where it is called from: "stream
// libtutti.so+0x1f30 libtutti.so+0x2a44", two return addresses which addr2line knows. Waits within libtorch
// are none.

// Notes a place. True if this wait is to be left out. `waits`: "stream", "host", or "query", which answers
// that all is over.
bool left_out(const char* waits);

// Those noted so far, sorted.
std::vector<std::string> wait_places();

// From now on waits at this place are left out; "": none.
void leave_out(const std::string& place);

}  // namespace tutti::test_device

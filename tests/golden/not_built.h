#pragma once

#include <string>

namespace tutti {

// Whether the one table of what is not built yet, in folder_test.cpp, names it: a file ("alibi.h5"), a part
// of one ("events.json: algorithm_match_events") or an algorithm of Composer's ("algorithm Alibi"). Golden
// data of it is known, and left out.
bool is_not_built(const std::string& what);

}  // namespace tutti

#pragma once

#include <string>
#include <vector>

namespace tutti {

// The names of run folders, or their paths where names repeat.
std::vector<std::string> distinct_names(const std::vector<std::string>& run_dirs);

// True for a name and its endings behind a dot or slash: "optimizer.lr" ends with "lr".
bool ends_with_name(const std::string& name, const std::string& ending);

// The shortest ending that no other of the names has.
std::string short_name(const std::string& name, const std::vector<std::string>& among);

// The name that the user means by an ending; where the ending fits several names, `preferred` names come
// first. Throws UserError that begins with `where` and has the nearest name.
std::string meant_name(const std::string& ending, const std::vector<std::string>& names,
                       const std::vector<std::string>& preferred, const std::string& where);

}  // namespace tutti

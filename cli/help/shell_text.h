#pragma once

#include <string>

namespace tutti {

// Replaces each `what` in the text.
std::string replaced(std::string text, const std::string& what, const std::string& by);

// The description up to its first ": ", "; " or " (", for the narrow column of a completion menu.
std::string short_doc(const std::string& doc);

}  // namespace tutti

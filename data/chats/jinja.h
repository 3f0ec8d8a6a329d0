#pragma once

#include "data/chats/jinja_syntax.h"
#include "data/chats/jinja_value.h"

namespace tutti::jinja {

// The mark of what stands in {% generation %}.
inline constexpr char kGenerated = 3;

struct Work;

// Renders a template with these variables. Text that a turn of a loop over messages, or else of the outermost
// loop, writes behind an assistant's words is marked as the assistant's, up to the words of other roles.
// Throws UserError with the line.
MarkedText render(const Node& program, const Map& variables, Work& work);

}  // namespace tutti::jinja

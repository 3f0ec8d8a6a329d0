#pragma once

#include "data/chats/jinja_syntax.h"
#include "data/chats/jinja_value.h"

namespace tutti::jinja {

// The mark of what stands in {% generation %}.
inline constexpr char kGenerated = 3;

// Renders a template with these variables. What a turn of the outermost loop writes behind an assistant's
// words is marked as the assistant's, up to words of others. At most `most_work` steps and bytes of texts.
// Throws UserError with the line.
MarkedText render(const Node& program, const Map& variables, int64_t most_work);

}  // namespace tutti::jinja

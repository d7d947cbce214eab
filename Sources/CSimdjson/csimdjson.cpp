#include "csimdjson.h"

#include <simdjson.h>

tapline_simdjson_verdict tapline_simdjson_check(const void *text, size_t count) {
    static thread_local simdjson::dom::parser parser;
    auto error = parser.parse(static_cast<const uint8_t *>(text), count).error();
    switch (error) {
    case simdjson::SUCCESS:
        return tapline_simdjson_valid;
    case simdjson::NUMBER_ERROR:
        return tapline_simdjson_number;
    case simdjson::STRING_ERROR:
        return tapline_simdjson_string;
    case simdjson::UTF8_ERROR:
        return tapline_simdjson_utf8;
    case simdjson::DEPTH_ERROR:
        return tapline_simdjson_depth;
    default:
        return tapline_simdjson_other;
    }
}

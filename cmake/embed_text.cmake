# cmake -D NAME=... -D INPUT=... -D OUTPUT=... -P embed_text.cmake: writes the source of tutti_embed.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "namespace tutti {
extern const char ${NAME}[];
const char ${NAME}[] = R\"embedded(${text})embedded\";
}  // namespace tutti
")

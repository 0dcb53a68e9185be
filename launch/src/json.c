#include "json.h"

#include <string.h>

struct reader {
	struct json_doc *doc;
	char *at, *end;
	int depth;
};

static int value(struct reader *r);

static void space(struct reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

static int node(struct reader *r, enum json_type type)
{
	if (r->doc->used >= JSON_NODES)
		return -1;
	int i = r->doc->used++;
	r->doc->node[i] = (struct json){.type = type};
	return i;
}

static int hex4(struct reader *r)
{
	if (r->end - r->at < 4)
		return -1;
	int v = 0;
	for (int i = 0; i < 4; i++) {
		char c = *r->at++;
		int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
		if (d < 0)
			return -1;
		v = v * 16 + d;
	}
	return v;
}

/* Length of the valid UTF-8 sequence at p, or 0. */
static int utf8(const unsigned char *p, const unsigned char *end)
{
	unsigned c = *p;
	int n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
	if (n == 0 || end - p < n)
		return 0;
	for (int i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) || (c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static char *put_utf8(char *out, unsigned c)
{
	if (c < 0x80) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
		*out++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	} else {
		*out++ = (char)(0xf0 | c >> 18);
		*out++ = (char)(0x80 | (c >> 12 & 0x3f));
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
		*out++ = (char)(0x80 | (c & 0x3f));
	}
	return out;
}

static int string(struct reader *r)
{
	int i = node(r, JSON_STRING);
	if (i < 0 || r->at >= r->end || *r->at++ != '"')
		return -1;
	char *out = r->at;
	r->doc->node[i].text = out;
	while (r->at < r->end) {
		unsigned char c = (unsigned char)*r->at;
		if (c == '"') {
			r->at++;
			*out = 0;
			r->doc->node[i].length = (size_t)(out - r->doc->node[i].text);
			return i;
		}
		if (c < 0x20)
			return -1;
		if (c != '\\') {
			int n = utf8((const unsigned char *)r->at, (const unsigned char *)r->end);
			if (n == 0)
				return -1;
			memmove(out, r->at, (size_t)n);
			out += n;
			r->at += n;
			continue;
		}
		if (++r->at >= r->end)
			return -1;
		static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
		char e = *r->at++;
		const char *known = e ? strchr(from, e) : NULL;
		if (known) {
			*out++ = to[known - from];
			continue;
		}
		if (e != 'u')
			return -1;
		int u = hex4(r);
		if (u <= 0 || (u >= 0xdc00 && u < 0xe000))
			return -1;
		if (u >= 0xd800 && u < 0xdc00) {
			if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
				return -1;
			r->at += 2;
			int low = hex4(r);
			if (low < 0xdc00 || low > 0xdfff)
				return -1;
			u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
		}
		out = put_utf8(out, (unsigned)u);
	}
	return -1;
}

static int number(struct reader *r)
{
	int i = node(r, JSON_NUMBER);
	if (i < 0)
		return -1;
	bool minus = *r->at == '-';
	if (minus)
		r->at++;
	if (r->at >= r->end || *r->at < '0' || *r->at > '9')
		return -1;
	if (*r->at == '0' && r->at + 1 < r->end && r->at[1] >= '0' && r->at[1] <= '9')
		return -1;
	int64_t v = 0;
	while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
		v = v * 10 + (*r->at++ - '0');
		if (v > 9007199254740991)
			return -1;
	}
	if (r->at < r->end && (*r->at == '.' || *r->at == 'e' || *r->at == 'E'))
		return -1;
	r->doc->node[i].number = minus ? -v : v;
	return i;
}

static int word(struct reader *r, const char *text, enum json_type type)
{
	size_t n = strlen(text);
	if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n) != 0)
		return -1;
	r->at += n;
	return node(r, type);
}

static int collection(struct reader *r, bool object)
{
	char close = object ? '}' : ']';
	int i = node(r, object ? JSON_OBJECT : JSON_ARRAY);
	if (i < 0 || ++r->depth > JSON_DEPTH)
		return -1;
	r->at++;
	space(r);
	int last = 0;
	if (r->at < r->end && *r->at == close) {
		r->at++;
		r->depth--;
		return i;
	}
	for (;;) {
		space(r);
		int item;
		if (object) {
			item = string(r);
			if (item < 0)
				return -1;
			space(r);
			if (r->at >= r->end || *r->at++ != ':')
				return -1;
			space(r);
			int v = value(r);
			if (v < 0)
				return -1;
			r->doc->node[item].first = v;
		} else {
			item = value(r);
			if (item < 0)
				return -1;
		}
		if (last)
			r->doc->node[last].next = item;
		else
			r->doc->node[i].first = item;
		last = item;
		r->doc->node[i].count++;
		space(r);
		if (r->at >= r->end)
			return -1;
		char c = *r->at++;
		if (c == close) {
			r->depth--;
			return i;
		}
		if (c != ',')
			return -1;
	}
}

static int value(struct reader *r)
{
	if (r->at >= r->end)
		return -1;
	switch (*r->at) {
	case '{': return collection(r, true);
	case '[': return collection(r, false);
	case '"': return string(r);
	case 't': return word(r, "true", JSON_TRUE);
	case 'f': return word(r, "false", JSON_FALSE);
	case 'n': return word(r, "null", JSON_NULL);
	default: return number(r);
	}
}

const struct json *json_read(struct json_doc *doc, char *text, size_t length)
{
	struct reader r = {.doc = doc, .at = text, .end = text + length};
	doc->used = 0;
	space(&r);
	int i = value(&r);
	if (i < 0)
		return NULL;
	space(&r);
	return r.at == r.end ? &doc->node[i] : NULL;
}

const struct json *json_child(const struct json_doc *doc, const struct json *parent)
{
	return parent->first && parent->count ? &doc->node[parent->first] : NULL;
}

const struct json *json_next(const struct json_doc *doc, const struct json *node)
{
	return node->next ? &doc->node[node->next] : NULL;
}

const struct json *json_get(const struct json_doc *doc, const struct json *object, const char *name)
{
	if (object->type != JSON_OBJECT)
		return NULL;
	for (const struct json *key = json_child(doc, object); key; key = json_next(doc, key))
		if (strcmp(key->text, name) == 0)
			return &doc->node[key->first];
	return NULL;
}

int json_utf8(const char *text, const char *end)
{
	return utf8((const unsigned char *)text, (const unsigned char *)end);
}

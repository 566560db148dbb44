const DNS_LABEL = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?';
const DNS_SUBDOMAIN = new RegExp(`^${DNS_LABEL}(?:\\.${DNS_LABEL})*$`);

/** RFC 1123 subdomain as Kubernetes validates it: at most 253 characters, labels of any length. */
export function isDnsSubdomain(text: string): boolean {
  return text.length <= 253 && DNS_SUBDOMAIN.test(text);
}

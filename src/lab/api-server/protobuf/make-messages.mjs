// Generates messages.ts: the protobuf messages of the kinds that the API server double serves.
// Usage: node make-messages.mjs STAGING   (the folder staging/src/k8s.io of a Kubernetes source tree)
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const staging = process.argv[2];
if (!staging) throw new Error('usage: node make-messages.mjs STAGING');

/** Short names of the packages to read, by import path. */
const PACKAGES = {
  'k8s.io/apimachinery/pkg/apis/meta/v1': 'meta',
  'k8s.io/api/core/v1': 'core',
  'k8s.io/api/apps/v1': 'apps',
  'k8s.io/api/authentication/v1': 'authentication',
  'k8s.io/api/authorization/v1': 'authorization',
  'k8s.io/api/certificates/v1': 'certificates',
  'k8s.io/api/coordination/v1': 'coordination',
  'k8s.io/api/rbac/v1': 'rbac',
};
const ROOTS = [
  'core.ConfigMap core.Event core.Namespace core.Node core.Pod core.Secret core.ServiceAccount core.Service',
  'apps.DaemonSet apps.Deployment certificates.CertificateSigningRequest coordination.Lease',
  'rbac.ClusterRole rbac.ClusterRoleBinding rbac.Role rbac.RoleBinding meta.DeleteOptions',
  'authentication.SelfSubjectReview authentication.TokenReview authentication.TokenRequest',
  'authorization.SelfSubjectAccessReview authorization.SubjectAccessReview',
].flatMap((line) => line.split(' '));
/** Types with their own encoding, by package and name in the importing source file. */
const SPECIAL = {
  'meta.Time': 'time',
  'meta.MicroTime': 'microtime',
  'meta.Duration': 'duration',
  'meta.FieldsV1': 'skip',
  'resource.Quantity': 'quantity',
  'intstr.IntOrString': 'intOrString',
  'runtime.RawExtension': 'raw',
  'types.UID': 'string',
  'types.NodeName': 'string',
};
const BASIC = { string: 'string', bool: 'bool', int32: 'int', int64: 'int', int: 'int', uint32: 'int', uint64: 'int', float64: 'skip' };

const structs = new Map();
const aliases = new Map();
for (const [path, name] of Object.entries(PACKAGES)) readPackage(path.replace(/^k8s\.io\//, ''), name);

function readPackage(path, name) {
  const source = readFileSync(join(staging, path, 'types.go'), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
  const imports = new Map(
    [...source.matchAll(/^\t(?:(\w+) )?"([^"]+)"$/gm)].map(([, alias, target]) => [
      alias ?? target.split('/').at(-1),
      PACKAGES[target] ?? target.split('/').at(-1),
    ]),
  );
  for (const [, type, body] of source.matchAll(/^type (\w+) struct \{\n([\s\S]*?)^\}/gm))
    structs.set(`${name}.${type}`, readFields(name, imports, body));
  for (const [, type, target] of source.matchAll(/^type (\w+) (?!struct|interface|=)([^\s{]+)/gm))
    aliases.set(`${name}.${type}`, { target, imports, name });
}

function readFields(name, imports, body) {
  const fields = [];
  for (const line of body.split('\n')) {
    const tagged = /^\t(?:(\w+)\s+)?(\S+)\s+`(.*)`/.exec(line.replace(/\/\/(?![^`]*`).*$/, ''));
    if (!tagged) continue;
    const [, field, type, tags] = tagged;
    const json = /json:"([^",]*)(,[^"]*)?"/.exec(tags);
    const number = /protobuf:"\w+,(\d+)/.exec(tags)?.[1];
    if (!json || number === undefined) continue;
    const hidden = json[1] === '-';
    const inline = field === undefined && (json[2] ?? '').includes('inline');
    fields.push({ number, hidden, json: inline ? '-' : json[1], type, name, imports });
  }
  return fields;
}

function resolve(type, { name, imports }) {
  if (type === '[]byte') return 'bytes';
  if (type.startsWith('*')) return `*${resolve(type.slice(1), { name, imports })}`;
  if (type.startsWith('[]')) return `[]${resolve(type.slice(2), { name, imports })}`;
  const map = /^map\[[^\]]+\](.+)$/.exec(type);
  if (map) return `map:${resolve(map[1], { name, imports })}`;
  if (BASIC[type]) return BASIC[type];
  const [first, second] = type.split('.');
  const full = second === undefined ? `${name}.${first}` : `${imports.get(first)}.${second}`;
  if (SPECIAL[full]) return SPECIAL[full];
  if (structs.has(full)) return full;
  const alias = aliases.get(full);
  if (!alias) throw new Error(`unknown type ${full}`);
  // A named list is a separate message when it is the value of a map or a list.
  const target = resolve(alias.target, alias);
  return target.startsWith('[]') ? `items:${target.slice(2)}` : target;
}

const messages = new Map();
const waiting = [...ROOTS];
while (waiting.length > 0) {
  const message = waiting.pop();
  if (messages.has(message)) continue;
  const fields = structs.get(message);
  if (!fields) throw new Error(`no struct ${message}`);
  const entries = [];
  for (const field of fields) {
    const type = resolve(field.type, field);
    if (type.includes('skip') || field.json === 'managedFields' || field.hidden) continue;
    entries.push([field.number, `${field.json} ${type}`]);
    const inner = /[a-z]+\.[A-Z]\w*/.exec(type)?.[0];
    if (inner) waiting.push(inner);
  }
  messages.set(message, Object.fromEntries(entries));
}

const lines = [...messages]
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(
    ([message, fields]) =>
      `${message}: ${Object.entries(fields)
        .map(([number, field]) => `${number} ${field}`)
        .join('; ')}`,
  );
const text = `/**
 * The protobuf messages of the API kinds, generated by make-messages.mjs from Kubernetes 1.36: one message per line,
 * each field with its number, JSON name (\`-\`: its members are inlined into the outer message) and type.
 * \`*\`: absent and zero differ.
 */
export const MESSAGES = \`
${lines.join('\n')}
\`;
`;
writeFileSync(new URL('messages.ts', import.meta.url), text);
process.stdout.write(`${messages.size} messages\n`);

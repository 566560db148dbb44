import { request as httpsRequest } from 'node:https';
import { isJsonObject, type Json } from '../../src/base/json.ts';
import { CONTENT_TYPES, type Scenario, type Step } from './api-server-requests.ts';

/** An API server, double or real, and an admin's credentials for it. */
export interface AskedServer {
  readonly url: string;
  readonly caPem: string;
  readonly admin: { readonly certPem: string; readonly keyPem: string };
}

/** A response in a form that can be compared with a real server's: values that differ from run to run are replaced by names. */
export interface RecordedAnswer {
  readonly request: string;
  readonly status: number;
  readonly body?: Json;
  readonly reason?: Json;
}

/** Sends the steps of a scenario in sequence. */
export async function playScenario(server: AskedServer, { steps }: Scenario): Promise<readonly RecordedAnswer[]> {
  const answers: RecordedAnswer[] = [];
  const names = new NameTable();
  let last: Json = null;
  for (const step of steps) {
    const { status, text } = await send(server, step, last);
    const parsed = parseJson(text);
    if (isJsonObject(parsed) && parsed.kind !== 'Status') last = parsed;
    const request = `${step.send}${step.as === undefined ? '' : ` as ${JSON.stringify(step.as)}`}`;
    const { compare = 'all' } = step;
    const reason = isJsonObject(parsed) ? (parsed.reason ?? null) : null;
    if (compare === 'all') answers.push({ request, status, body: names.normalise(parsed ?? text) });
    else answers.push({ request, status, ...(reason === null ? {} : { reason }) });
  }
  return answers;
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

function send({ url, caPem, admin }: AskedServer, step: Step, last: Json): Promise<Answer> {
  const [method = '', path = ''] = step.send.split(' ');
  const fill = (text: string) => text.replaceAll('{rv}', metadataOf(last, 'resourceVersion')).replaceAll('{uid}', metadataOf(last, 'uid'));
  const body = step.raw ?? (step.body === undefined ? undefined : fill(JSON.stringify(step.body)));
  const headers: Record<string, string | string[]> = { Accept: 'application/json' };
  if (body !== undefined) {
    headers['Content-Type'] = CONTENT_TYPES[step.type ?? 'json'];
    headers['Content-Length'] = String(Buffer.byteLength(body));
  }
  const credentials =
    step.as === 'anonymous' || (typeof step.as === 'object' && 'token' in step.as) ? {} : { cert: admin.certPem, key: admin.keyPem };
  if (typeof step.as === 'object' && 'token' in step.as) headers.Authorization = `Bearer ${step.as.token}`;
  if (typeof step.as === 'object' && 'user' in step.as) {
    headers['Impersonate-User'] = step.as.user;
    headers['Impersonate-Group'] = [...(step.as.groups ?? [])];
  }
  return new Promise((resolve, reject) => {
    const asked = httpsRequest(`${url}${fill(path)}`, { method, headers, ca: caPem, agent: false, ...credentials }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }));
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

function metadataOf(object: Json, name: string): string {
  const metadata = isJsonObject(object) ? object.metadata : undefined;
  return isJsonObject(metadata) ? String(metadata[name] ?? '') : '';
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** Replaces uids, versions and times by names in the order of their first occurrence, so that equality is still compared. */
class NameTable {
  readonly #names = new Map<string, string>();

  normalise(value: Json): Json {
    if (typeof value === 'string') return this.#replaceWithin(value);
    if (Array.isArray(value)) return value.map((item) => this.normalise(item));
    if (!isJsonObject(value)) return value;
    const isList = Array.isArray(value.items);
    return Object.fromEntries(
      Object.keys(value)
        .filter((key) => key !== 'managedFields' && !(isList && key === 'metadata'))
        .sort()
        .map((key) => [key, this.#member(key, value[key] ?? null, value)]),
    );
  }

  #member(key: string, value: Json, owner: { readonly [key: string]: Json }): Json {
    if (key === 'resourceVersion' && typeof value === 'string') return this.#name('version', value);
    if (key === 'uid' && typeof value === 'string' && value.length === 36) return this.#name('uid', value);
    if (key === 'name' && typeof owner.generateName === 'string') return `${owner.generateName}<suffix>`;
    return this.normalise(value);
  }

  #replaceWithin(text: string): string {
    return text
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, '<time>')
      .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (uid) => this.#name('uid', uid))
      .replace(/in record \(\d+\)/, 'in record (<version>)');
  }

  #name(kind: string, value: string): string {
    const known = this.#names.get(`${kind} ${value}`);
    if (known !== undefined) return known;
    const count = [...this.#names.keys()].filter((key) => key.startsWith(`${kind} `)).length;
    const name = `<${kind} ${count + 1}>`;
    this.#names.set(`${kind} ${value}`, name);
    return name;
  }
}

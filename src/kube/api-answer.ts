import * as z from 'zod';
import { isJsonObject, type JsonObject } from '../base/json.ts';
import { describeIssue } from './read-object.ts';

const text = z.string().nullish();
const texts = z.record(z.string(), z.string()).nullish();
const META = z.looseObject({
  namespace: text,
  uid: text,
  resourceVersion: text,
  labels: texts,
  annotations: texts,
  creationTimestamp: text,
  deletionTimestamp: text,
});
const NAMED_META = META.extend({ name: z.string().min(1) });
const OBJECT = z.object({ apiVersion: z.string(), kind: z.string(), metadata: NAMED_META });
const UNNAMED_OBJECT = OBJECT.extend({ metadata: META });
const BOOKMARK = OBJECT.extend({ metadata: META.extend({ resourceVersion: z.string().min(1) }) });
const LIST = z.object({
  items: z.array(z.object({ metadata: NAMED_META })).nullable(),
  metadata: z.looseObject({ resourceVersion: text, continue: text }),
});

const condition = z.looseObject({ type: z.string(), status: z.string(), reason: text, message: text });
const data = z.object({ data: texts, binaryData: texts });
/** Schemas of the members that the program reads, for the most frequent kinds. */
const MEMBERS: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ['ConfigMap', data],
  ['Secret', data],
  [
    'Node',
    z.object({
      spec: z.looseObject({ taints: z.array(z.looseObject({ key: z.string(), effect: z.string() })).optional() }).optional(),
      status: z
        .looseObject({
          addresses: z.array(z.looseObject({ type: z.string(), address: z.string() })).optional(),
          conditions: z.array(condition).optional(),
          nodeInfo: z.looseObject({ kubeletVersion: z.string().optional() }).optional(),
        })
        .optional(),
    }),
  ],
]);

export interface ExpectedObject {
  readonly kind: string;
  /** Set when the request names an object. */
  readonly name?: string | undefined;
  /** Accepts responses without a name, such as those to reviews. */
  readonly isUnnamed?: boolean;
}

/** Why a response is not the expected object, as a clause that begins with the field; null when it is. */
export function objectIssue(body: JsonObject, { kind, name, isUnnamed = false }: ExpectedObject): string | null {
  const issue = issueOf(isUnnamed ? UNNAMED_OBJECT : OBJECT, body);
  if (issue !== null) return issue;
  if (body.kind !== kind) return `kind: expected ${kind}, received ${String(body.kind)}`;
  const received = isJsonObject(body.metadata) ? body.metadata.name : undefined;
  if (name !== undefined && received !== name) return `metadata.name: expected ${name}, received ${String(received)}`;
  return membersIssue(body, kind);
}

/** As objectIssue, for a list of objects of a kind; the items need not have the kind. */
export function listIssue(body: JsonObject, kind: string): string | null {
  const issue = issueOf(LIST, body);
  if (issue !== null || !MEMBERS.has(kind)) return issue;
  for (const [index, item] of ((body.items ?? []) as readonly JsonObject[]).entries()) {
    const wrong = membersIssue(item, kind);
    if (wrong !== null) return `items[${index}].${wrong}`;
  }
  return null;
}

export function eventIssue(type: string, object: JsonObject, kind: string): string | null {
  const issue = type === 'BOOKMARK' ? issueOf(BOOKMARK, object) : objectIssue(object, { kind });
  return issue === null ? null : `object.${issue}`;
}

function membersIssue(object: JsonObject, kind: string): string | null {
  const schema = MEMBERS.get(kind);
  return schema === undefined ? null : issueOf(schema, object);
}

function issueOf(schema: z.ZodType, body: JsonObject): string | null {
  const { error } = schema.safeParse(body);
  return error === undefined ? null : describeIssue(error);
}

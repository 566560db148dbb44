import type { JsonObject } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { pemBlocks } from '../../../src/x509/pem-blocks.ts';
import { itemsOf, memberOf, textOf, textsOf, withMember } from '../members.ts';
import { anyName } from '../name-rules.ts';
import { type Cause, invalidValue, requiredValue, unsupportedValue } from '../status.ts';
import { timestamp } from '../timestamp.ts';
import type { KindRules, WriteContext } from './kind.ts';

const DECISIONS = ['Approved', 'Denied'];
const SHORTEST_SECONDS = 600;
const USAGES = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
];

/**
 * @see kubernetes/kubernetes pkg/registry/certificates/certificates/strategy.go,
 *   pkg/apis/certificates/validation (1.36)
 */
export const certificateSigningRequests: KindRules = {
  name: anyName,
  fields: (request) => ({ 'spec.signerName': textOf(memberOf(request, 'spec'), 'signerName') }),
  prepareCreate: (request, { user }) => ({
    ...request,
    spec: { ...withoutRequester(memberOf(request, 'spec')), ...requester(user) },
    status: {},
  }),
  prepareUpdate: (request, old, context) => ({ ...request, spec: old.spec ?? {}, status: nextStatus(request, old, context) }),
  validate: (request, old) => (old ? [] : requestCauses(memberOf(request, 'spec'))),
};

function withoutRequester(spec: JsonObject): JsonObject {
  return ['username', 'uid', 'groups', 'extra'].reduce((rest, name) => withMember(rest, name, undefined), spec);
}

/** The server sets the requester; values from the client are ignored. */
function requester(user: WriteContext['user']): JsonObject {
  return {
    username: user.name,
    ...(user.uid ? { uid: user.uid } : {}),
    groups: user.groups,
    ...(Object.keys(user.extra).length > 0 ? { extra: user.extra } : {}),
  };
}

/** `/approval` sets the decision, `/status` the certificate; the main resource changes neither. */
function nextStatus(request: KubeObject, old: KubeObject, { subresource, now }: WriteContext): JsonObject {
  const [asked, before] = [memberOf(request, 'status'), memberOf(old, 'status')];
  const conditions = (status: JsonObject, decisions: boolean) =>
    itemsOf(status, 'conditions').filter((condition) => DECISIONS.includes(textOf(condition, 'type')) === decisions);
  if (subresource === 'approval') {
    return { ...before, conditions: dated([...conditions(asked, true), ...conditions(before, false)], before, now) };
  }
  if (subresource !== 'status') return before;
  const all = dated([...conditions(before, true), ...conditions(asked, false)], before, now);
  return { ...asked, ...(all.length > 0 ? { conditions: all } : {}) };
}

function dated(conditions: readonly JsonObject[], before: JsonObject, now: Date): readonly JsonObject[] {
  const time = timestamp(now);
  return conditions.map((condition) => {
    const same = itemsOf(before, 'conditions').find((each) => each.type === condition.type && each.status === condition.status);
    return {
      ...condition,
      lastUpdateTime: condition.lastUpdateTime ?? time,
      lastTransitionTime: condition.lastTransitionTime ?? same?.lastTransitionTime ?? time,
    };
  });
}

function requestCauses(spec: JsonObject): readonly Cause[] {
  const pem = Buffer.from(textOf(spec, 'request'), 'base64').toString('utf8');
  const [signer, usages, seconds] = [textOf(spec, 'signerName'), textsOf(spec, 'usages'), spec.expirationSeconds];
  return [
    ...(pemBlocks(pem).some(({ label }) => label === 'CERTIFICATE REQUEST')
      ? []
      : [invalidValue('spec.request', bytesText(textOf(spec, 'request')), 'PEM block type must be CERTIFICATE REQUEST')]),
    ...(usages.length === 0 ? [requiredValue('spec.usages')] : []),
    ...usages.flatMap((usage, index) => (USAGES.includes(usage) ? [] : [unsupportedValue(`spec.usages[${index}]`, usage, USAGES)])),
    ...signerCauses(signer),
    ...(typeof seconds === 'number' && seconds < SHORTEST_SECONDS
      ? [invalidValue('spec.expirationSeconds', seconds, 'may not specify a duration less than 600 seconds (10 minutes)')]
      : []),
  ];
}

function signerCauses(signer: string): readonly Cause[] {
  if (signer === '') return [requiredValue('spec.signerName')];
  return signer.includes('/')
    ? []
    : [invalidValue('spec.signerName', signer, 'must be a fully qualified domain and path of the form "example.com/signer-name"')];
}

/** Go prints a []byte as its numbers. */
function bytesText(base64: string): readonly number[] {
  return [...Buffer.from(base64, 'base64')];
}

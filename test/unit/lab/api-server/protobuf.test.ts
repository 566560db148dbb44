import { describe, expect, it } from 'vitest';
import { decodeProtobuf } from '../../../../src/lab/api-server/protobuf/decode-protobuf.ts';

/** Requests of kubectl 1.32. */
const SENT: readonly (readonly [command: string, base64: string, object: object])[] = [
  [
    'kubectl create configmap greek --from-literal=a=ä --from-literal=empty=',
    'azhzAAoPCgJ2MRIJQ29uZmlnTWFwEisKFQoFZ3JlZWsSABoAIgAqADIAOABCABIHCgFhEgLDpBIJCgVlbXB0eRIAGgAiAA==',
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'greek' }, data: { a: 'ä', empty: '' } },
  ],
  [
    'kubectl create secret generic s --from-literal=p=hunter2 --type=custom',
    'azhzAAoMCgJ2MRIGU2VjcmV0EikKEQoBcxIAGgAiACoAMgA4AEIAEgwKAXASB2h1bnRlcjIaBmN1c3RvbRoAIgA=',
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: { p: 'aHVudGVyMg==' }, type: 'custom' },
  ],
  [
    'kubectl create deployment web --image=nginx:1 --replicas=0 --port=80',
    'azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50EroBCh8KA3dlYhIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEogBCAASDAoKCgNhcHASA3dlYhpuChwKABIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEk4SMAoFbmdpbngSB25naW54OjEqADIKCgAQABhQIgAqAEIAagByAIABAIgBAJABAKIBABoAMgBCAEoAUgBYAGAAaACCAQCKAQCaAQDCAQAiAgoAKAA4ABoMCAAQABgAIAAoADgAGgAiAA==',
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', labels: { app: 'web' } },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'web' } },
        template: {
          metadata: { labels: { app: 'web' } },
          spec: { containers: [{ name: 'nginx', image: 'nginx:1', ports: [{ containerPort: 80 }] }] },
        },
      },
    },
  ],
  [
    'kubectl create service nodeport web --tcp=80:8080',
    'azhzAAoNCgJ2MRIHU2VydmljZRJoCh8KA3dlYhIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEkEKGwoHODAtODA4MBIDVENQGFAiBwgAEJA/GgAoABIKCgNhcHASA3dlYhoAIghOb2RlUG9ydDoAQgBSAFoAYABoABoCCgAaACIA',
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', labels: { app: 'web' } },
      spec: { ports: [{ name: '80-8080', protocol: 'TCP', port: 80, targetPort: 8080 }], selector: { app: 'web' }, type: 'NodePort' },
    },
  ],
  [
    'kubectl create token robot --duration=20m',
    'azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIdChAKABIAGgAiACoAMgA4AEIAEgMgsAkaBAoAEgAaACIA',
    { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 1200 } },
  ],
];
const bytesOf = (base64: string) => Buffer.from(base64, 'base64');

describe('decodeProtobuf', () => {
  it.each(SENT)('reads %s', (_, base64, object) => {
    expect(decodeProtobuf(bytesOf(base64))).toEqual(object);
  });

  it('rejects an unknown kind', () => {
    // kubectl create quota q --hard=cpu=1
    const quota = 'azhzAAoTCgJ2MRINUmVzb3VyY2VRdW90YRIjChEKAXESABoAIgAqADIAOABCABIMCgoKA2NwdRIDCgExGgAaACIA';
    expect(() => decodeProtobuf(bytesOf(quota))).toThrow('no kind "ResourceQuota" is registered for version "v1"');
  });

  it('rejects input that is not protobuf', () => {
    expect(() => decodeProtobuf(Buffer.from('{"kind":"ConfigMap"}'))).toThrow('does not appear to be a protobuf message');
  });

  it('fails with one of these errors for a truncated message', () => {
    const whole = bytesOf(SENT[2]?.[1] ?? '');
    const outcomes = Array.from({ length: whole.length }, (_, length) => {
      try {
        return typeof decodeProtobuf(whole.subarray(0, length));
      } catch (error) {
        return (error as Error).message;
      }
    });
    expect(new Set(outcomes)).toEqual(
      new Set([
        'provided data does not appear to be a protobuf message',
        'unexpected end of the message',
        'no kind "" is registered for version ""',
        'object',
      ]),
    );
  });
});

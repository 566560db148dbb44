import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { clusterApiManifests } from '../../../support/cluster-api-manifests.ts';
import { readCommandLine } from '../../../support/read-command-line.ts';

// The shapes of the kinds are those of their APIs; a test with a real API server applies them.
// biome-ignore lint/suspicious/noExplicitAny: manifests of many kinds
const of = (kind: string): any => clusterApiManifests().find((object) => object.kind === kind);

it('lists all files of the base', () => {
  const { resources } = parse(readFileSync('deploy/cluster-api/kustomization.yaml', 'utf8'));
  expect([...resources, 'kustomization.yaml'].toSorted()).toEqual(readdirSync('deploy/cluster-api').toSorted());
});

it('registers the service with the certificate that the Deployment serves', () => {
  const [{ spec, metadata }, service, deployment, certificate] = ['ExtensionConfig', 'Service', 'Deployment', 'Certificate'].map(of);
  const { name, namespace } = service.metadata;
  expect(spec.clientConfig.service).toEqual({ name, namespace, port: service.spec.ports[0].port });
  expect(certificate.spec.dnsNames).toContain(`${name}.${namespace}.svc`);
  const { secretName } = certificate.spec;
  expect(metadata.annotations['runtime.cluster.x-k8s.io/inject-ca-from-secret']).toBe(`${namespace}/${secretName}`);
  expect(deployment.spec.template.spec.volumes[0].secret.secretName).toBe(secretName);
  expect(deployment.spec.template.metadata.labels).toEqual(service.spec.selector);
  expect(of('Issuer').metadata.name).toBe(certificate.spec.issuerRef.name);
});

it('starts the command with a certificate of the mounted Secret, on the port of the Service', async () => {
  const { containers, volumes } = of('Deployment').spec.template.spec;
  const [container] = containers;
  const request = await readCommandLine(container.args);
  expect(request).toMatchObject({
    port: container.ports[0].containerPort,
    certFile: '/tls/tls.crt',
    keyFile: '/tls/tls.key',
    allow: 'new-pods-only',
  });
  expect([container.volumeMounts[0].mountPath, container.volumeMounts[0].name]).toEqual(['/tls', volumes[0].name]);
});

it('grants only get, on three kinds', () => {
  const { rules } = of('ClusterRole');
  expect(rules.map(({ resources, verbs }: { resources: string[]; verbs: string[] }) => [...resources, ...verbs])).toEqual([
    ['machines', 'get'],
    ['kubeadmconfigs', 'get'],
    ['secrets', 'get'],
  ]);
  expect(of('ClusterRoleBinding').roleRef.name).toBe(of('ClusterRole').metadata.name);
});

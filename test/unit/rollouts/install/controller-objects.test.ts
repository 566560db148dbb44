import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { renderManifests } from '../../../../src/cli/output/show-document.ts';
import { controllerObjects } from '../../../../src/rollouts/install/controller-objects.ts';

const objects = controllerObjects('kubeletadm');

it('the Kustomize base has the objects of controller install', async () => {
  const path = fileURLToPath(new URL('../../../../deploy/controller/controller.yaml', import.meta.url));
  await expect(renderManifests(objects, 'yaml')).toMatchFileSnapshot(path);
});

describe('the rights of the controller', () => {
  const rules = objects.flatMap((object) => (Array.isArray(object.rules) ? (object.rules as JsonObject[]) : []));

  it('have no wildcard, no Secrets, and change or delete no existing role', () => {
    expect(rules.length).toBeGreaterThan(20);
    expect(JSON.stringify(rules)).not.toMatch(/"\*"|secrets|impersonate|escalate|"bind"/);
    const roles = rules.filter(({ apiGroups }) => JSON.stringify(apiGroups).includes('rbac'));
    expect(new Set(roles.flatMap(({ verbs }) => verbs as string[]))).toEqual(new Set(['get', 'create']));
  });
});

it('the pods of the controller meet the Pod Security Standard restricted', () => {
  const { spec } = objects.find(({ kind }) => kind === 'Deployment') as { readonly spec?: JsonObject };
  expect(spec).toMatchObject({
    replicas: 2,
    template: {
      spec: {
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          { securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } } },
        ],
      },
    },
  });
});
